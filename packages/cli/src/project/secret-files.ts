import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { errnoOf } from '@toolgate/values'
import { readOwnJson } from '@toolgate/values/json'
import { type FileChange, readFile } from '../clients/text-file.ts'
import { CliError } from '../exit.ts'
import { printable } from '../io.ts'

/** A secret of a server's entry, and the file that keeps it. */
export interface EntrySecret {
  /** The path of the file from the configuration's folder, such as `.toolgate/secrets/github-TOKEN`. */
  readonly file: string
  /** The place of the secret in the entry, such as `env.TOKEN`. */
  readonly from: string
  readonly value: string
}

const FOLDER = '.toolgate/secrets'
/** The longest secret that a gateway reads from a file. */
const MAX_BYTES = 64 * 1024

/** Collects the secrets of one server's entry, and returns the references that replace them. */
export class EntrySecrets {
  readonly list: EntrySecret[] = []
  readonly #server: string
  /** How many files have a name, without regard to case. */
  readonly #taken = new Map<string, number>()

  constructor(server: string) {
    this.#server = server
  }

  /** @throws {CliError} `usage` for a value that a gateway cannot read from a file */
  refer(name: string, from: string, value: string): string {
    if (Buffer.byteLength(value) >= MAX_BYTES || value.trim() === '')
      throw new CliError('usage', `${printable(from)} must have a text of at most 64 KiB.`)
    const base = `${FOLDER}/${`${this.#server}-${name}`.replaceAll(/[^\w.-]+/g, '_')}`
    const same = this.#taken.get(base.toLowerCase()) ?? 0
    this.#taken.set(base.toLowerCase(), same + 1)
    const file = same === 0 ? base : `${base}.${same + 1}`
    this.list.push({ file, from, value })
    return `\${file:${file}}`
  }
}

/** Returns the changes that write secrets beside a configuration. The last line feed is not a part of a secret. */
export function secretChanges(config: string, secrets: readonly EntrySecret[]): readonly FileChange[] {
  return secrets.map(({ file, value }) => {
    const full = path.resolve(path.dirname(path.resolve(config)), file)
    checkNoLink(full)
    return { file: full, before: readFile(full), after: `${value}\n` }
  })
}

/** Returns the folder of secrets beside a configuration, and its files. */
export function secretFiles(config: string): readonly string[] {
  const folder = path.resolve(path.dirname(path.resolve(config)), FOLDER)
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter((name) => name !== '.gitignore')
  return [folder, ...names.map((name) => path.join(folder, name))]
}

/** Returns whether the files beside a configuration have exactly these secrets. */
export function hasSecrets(config: string, secrets: readonly EntrySecret[]): boolean {
  return secretChanges(config, secrets).every(({ before, after }) => before === after)
}

/**
 * Makes the folder of secrets, which only its owner can open and git ignores, and closes the files that are replaced.
 *
 * @throws {CliError} `usage` if the folder is a link, since the secrets would be elsewhere
 */
export function prepareSecrets(config: string, changes: readonly FileChange[]): void {
  if (changes.length === 0) return
  const folder = path.resolve(path.dirname(path.resolve(config)), FOLDER)
  for (const one of [path.dirname(folder), folder]) {
    checkNoLink(one)
    mkdirSync(one, { recursive: true, mode: 0o700 })
    try {
      writeFileSync(path.join(one, '.gitignore'), '*\n', { flag: 'wx' })
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
    }
  }
  chmodSync(folder, 0o700)
  for (const { file, before } of changes) if (before !== undefined) chmodSync(file, 0o600)
}

function checkNoLink(file: string): void {
  if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new CliError('usage', `${printable(file)} is a link. Secrets are written to files of this folder only.`)
}

/**
 * Returns an entry that starts before its secrets are written, with the variables that it needs. Nothing is on the disk
 * until the server has been tried.
 */
export function toTrial<T extends object>(
  entry: T,
  secrets: readonly EntrySecret[],
): { readonly entry: T; readonly env: Readonly<Record<string, string>> } {
  const name = (file: string) => `TOOLGATE_TRIAL_${Buffer.from(file).toString('hex')}`
  const text = secrets.reduce(
    (json, { file }) => json.replaceAll(`\${file:${file}}`, () => `\${${name(file)}}`),
    JSON.stringify(entry),
  )
  return {
    entry: readOwnJson(text) as T,
    env: Object.fromEntries(secrets.map(({ file, value }) => [name(file), value])),
  }
}
