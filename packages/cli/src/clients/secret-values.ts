import { createRedactor } from '@toolgate/values/redact'

/**
 * A redactor that also knows names that mean a secret only in a client's file. It recognises keys and tokens by their
 * form.
 */
const redactor = createRedactor({ keys: ['key', 'auth', 'pat', 'credential', 'credentials', 'dsn'] })
const OPAQUE = /^(?=.*\d)(?=.*[A-Za-z])[\w+=.~-]{20,}$/

export function isRedacted(text: string): boolean {
  return redactor.redactText(text) !== text
}

/** Whether a text has the form of a token: long, of letters and digits, without words. */
export function isOpaque(text: string): boolean {
  return OPAQUE.test(text)
}

const PLAIN_VARIABLES =
  /^(?:NODE_ENV|ENV|ENVIRONMENT|PATH|HOME|USER|SHELL|LANG|LC_\w+|TZ|PORT|HOST|HOSTNAME|DEBUG|VERBOSE|NO_COLOR|LOG_?LEVEL|\w+_(?:LOG_?LEVEL|PORT|HOST|REGION|LOCALE|TIMEOUT|TIMEOUT_MS|MODE))$/i
const PLAIN_VALUE = /^(?:true|false|yes|no|on|off|\d{1,5})$/i
/** Matches a path of words, such as `/home/vera/notes`. A path with a part that looks like a token does not match. */
const PATH = /^(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w .@/\\-]*$/

/**
 * Returns whether the value of a variable must not be in the configuration. Every value counts as a secret unless it is
 * clearly harmless: one more file costs little, and a secret in git costs much.
 */
export function isSecretVariable(name: string, value: string): boolean {
  if (value.trim() === '') return false
  if (isRedacted(`${name}=${value}`) || isOpaque(value)) return true
  if (PLAIN_VARIABLES.test(name) || PLAIN_VALUE.test(value)) return false
  if (PATH.test(value)) return value.split(/[/\\]/).some(isOpaque)
  if (!/^https?:\/\//.test(value)) return true
  const { parts, login } = secretsOfUrl(value)
  return parts.length > 0 || login !== undefined
}

const PUBLIC_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type', 'user-agent', 'accept-language'])

export function isSecretHeader(name: string, value: string): boolean {
  return value.trim() !== '' && !PUBLIC_HEADERS.has(name.toLowerCase())
}

/** Returns the part of an argument that is a secret. `before`: the argument before it, which may be its option. */
export function secretOfArgument(value: string, before: string | undefined): string | undefined {
  const [, flag = ''] = /^(--?[\w-]+=)./.exec(value) ?? []
  const rest = value.slice(flag.length)
  const isFlagged = before !== undefined && /^--?[\w-]+$/.test(before) && isRedacted(`${before} ${value}`)
  if (isFlagged || isRedacted(value) || isOpaque(rest)) return rest
  if (/^https?:\/\//.test(rest) && secretsOfUrl(rest).parts.length > 0) return rest
  return undefined
}

interface UrlSecrets {
  /** The URL without its user and password. It contains every part. */
  readonly bare: string
  /** Parts of `bare` that are secrets: segments of the path, and values of the query and the fragment. */
  readonly parts: readonly { readonly name: string; readonly text: string }[]
  /** The user and password, for a header. */
  readonly login?: { readonly user: string; readonly password: string }
}

/** Returns the parts of a URL that are secrets. */
export function secretsOfUrl(text: string): UrlSecrets {
  const url = URL.parse(text)
  if (!url) return { bare: text, parts: isRedacted(text) ? [{ name: 'url', text }] : [] }
  const { username, password } = url
  const login = { user: decodeURIComponent(username), password: decodeURIComponent(password) }
  url.username = url.password = ''
  const segments = url.pathname
    .split('/')
    .flatMap((part, i) => (isOpaque(part) ? [{ name: `path-${i}`, text: part }] : []))
  const pairs = [url.search, url.hash].flatMap((one) => one.slice(1).split('&'))
  const values = pairs.flatMap((pair) => {
    const [, name = '', value = ''] = /^([^=]*)=(.+)$/.exec(pair) ?? []
    return value !== '' && (isRedacted(pair) || isOpaque(value)) ? [{ name, text: value }] : []
  })
  const parts = [...segments, ...values]
  if (username !== '' || password !== '') return { bare: url.href, parts, login }
  return { bare: parts.length > 0 ? url.href : text, parts }
}
