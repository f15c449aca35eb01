import { readFileSync } from 'node:fs'
import { text as readAll } from 'node:stream/consumers'
import { errnoOf } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import { CliError } from './exit.ts'
import { printable } from './io.ts'
import { parseObject } from './json.ts'

/**
 * Returns the input of `--input`.
 * @throws {CliError} `usage` for an input that is not a JSON object, with line and column
 */
export async function readInput(given: string = '{}'): Promise<JsonObject> {
  const text = await readGiven(given)
  const input = parseObject(text)
  if (input) return input
  // This is loaded only for an invalid text.
  const { readPlacedJson } = await import('./placed-json.ts')
  const { problem } = readPlacedJson(text, { disallowComments: true })
  const name = given.startsWith('@') ? printable(given.slice(1)) : '--input'
  throw new CliError('usage', problem === undefined ? `${name} is not a JSON object.` : `${name}:${problem}.`, {
    hint: `Such as: --input '{"path":"a.txt"}', --input @file.json, or --input - for stdin.`,
  })
}

/** Returns a given text unchanged, from `@file`, or for `-` from stdin. @throws {CliError} `usage` */
export async function readGiven(given: string): Promise<string> {
  if (given === '-') return readAll(process.stdin)
  if (!given.startsWith('@')) return given
  try {
    return readFileSync(given.slice(1), 'utf8')
  } catch (cause) {
    throw new CliError('usage', `${printable(given.slice(1))} cannot be read (${errnoOf(cause)}).`, { cause })
  }
}
