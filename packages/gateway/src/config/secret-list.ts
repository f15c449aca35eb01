import { inspect } from 'node:util'

/** Variables that are not secret. Masking their values would hide every path. */
const NO_SECRETS: ReadonlySet<string> = new Set([
  'HOME',
  'HOST',
  'HOSTNAME',
  'LANG',
  'LOGNAME',
  'NODE_ENV',
  'PATH',
  'PORT',
  'PWD',
  'SHELL',
  'TEMP',
  'TMP',
  'TMPDIR',
  'TZ',
  'USER',
  'USERNAME',
  'USERPROFILE',
])

const MIN_LENGTH = 6

/** Collects the secrets of a configuration while it is read. */
interface SecretList {
  /** Adds the value of a variable. */
  addFilled(name: string, value: string): void
  addKey(key: string): void
  /** Returns the secrets. Only the length of the list is printed. */
  list(): readonly string[]
}

export function createSecretList(): SecretList {
  const secrets = new Set<string>()
  return {
    addFilled(name, value) {
      if (!NO_SECRETS.has(name) && value.length >= MIN_LENGTH) secrets.add(value)
    },
    addKey(key) {
      // Demo keys are public, and contain the names of their users.
      if (!key.startsWith('demo-')) secrets.add(key)
    },
    list: () => conceal([...secrets]),
  }
}

function conceal(secrets: readonly string[]): readonly string[] {
  const shown = `[${secrets.length} secrets]`
  const hidden = { value: () => shown }
  return Object.defineProperties([...secrets], { toJSON: hidden, [inspect.custom]: hidden })
}
