import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { SECRET_KEYS } from '../packages/values/src/redact/secret-keys.ts'
import { SECRET_VALUES } from '../packages/values/src/redact/secret-values.ts'

const PAGE = path.resolve(import.meta.dirname, '../docs/guide/redaction.md')
const SHOWN_LENGTH = 12

const TABLES: Readonly<Record<string, string>> = {
  keys: table(
    ['name', 'values', 'endings'],
    SECRET_KEYS.map(({ name, values, endings }) => [
      `\`${name}\``,
      values,
      endings.map((ending) => `\`${ending}\``).join(', '),
    ]),
  ),
  values: table(
    ['name', 'begins like', 'pattern', 'source'],
    SECRET_VALUES.map(({ name, example, pattern, source }) => [
      `\`${name}\``,
      `\`${example.join('').slice(0, SHOWN_LENGTH).replaceAll('\n', ' ')}…\``,
      `\`${pattern.source.replaceAll('|', '\\|')}\``,
      source,
    ]),
  ),
}

describe('docs/guide/redaction.md', () => {
  for (const [name, expected] of Object.entries(TABLES)) {
    it(`has the table of ${name} as the code has it`, () => {
      const text = readFileSync(PAGE, 'utf8')
      const [before, after] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`]
      const start = text.indexOf(before) + before.length
      const end = text.indexOf(after)
      if (process.env['TOOLGATE_UPDATE']) writeFileSync(PAGE, text.slice(0, start) + expected + text.slice(end))
      else assert.equal(text.slice(start, end), expected)
    })
  }
})

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  return [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}
