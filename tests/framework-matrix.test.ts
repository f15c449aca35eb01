import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import {
  type MatrixFile,
  type Observation,
  type Question,
  QUESTIONS,
  USER_WORDS,
} from '../packages/adapters/src/testing/matrix.ts'

/**
 * The guide's table of frameworks is made of what the adapters' tests have seen: each of those compares its row with
 * `packages/adapters/src/matrix`, and this compares the page with the rows. `TOOLGATE_UPDATE=1` writes the page anew.
 */
const ROOT = path.resolve(import.meta.dirname, '..')
const PAGE = path.join(ROOT, 'docs/guide/frameworks.md')
const BEGIN = '<!-- made by tests/framework-matrix.test.ts from what the tests of the adapters saw -->'
const END = '<!-- end of what is made -->'

/** In the order of the guide. */
const ORDER = [
  'ai-sdk',
  'openai-agents',
  'langchain',
  'mastra',
  'claude-agent',
  'mcp',
  'openai',
  'anthropic',
  'gemini',
] as const

const rows = new Map(
  globSync('*.json', { cwd: path.join(ROOT, 'packages/adapters/src/matrix') }).map((file) => {
    const text = readFileSync(path.join(ROOT, 'packages/adapters/src/matrix', file), 'utf8')
    return [path.basename(file, '.json'), JSON.parse(text) as MatrixFile]
  }),
)
const questions = Object.keys(QUESTIONS) as Question[]

describe('the framework matrix of the guide', () => {
  it('has a row for every adapter, and no other', () => {
    assert.deepEqual([...rows.keys()].toSorted(), [...ORDER].toSorted())
  })

  it('is what the tests of the adapters saw', () => {
    const page = readFileSync(PAGE, 'utf8')
    const [before, rest] = page.split(BEGIN) as [string, string]
    const made = `${before}${BEGIN}\n\n${table()}\n\n${END}${rest.split(END)[1]}`
    if (process.env['TOOLGATE_UPDATE']) writeFileSync(PAGE, made)
    assert.equal(readFileSync(PAGE, 'utf8'), made)
  })

  for (const [name, row] of rows)
    it(`promises nothing for ${name} that was not seen`, () => {
      for (const question of questions) assert.ok(row.with[question].holds, question)
    })
})

function table(): string {
  const head = ['framework', 'version', ...questions, 'words']
  const lines = ORDER.flatMap((name) => {
    const row = rows.get(name)
    if (!row) return []
    const marks = questions.map((one) => mark(row.without[one], row.with[one]))
    return [[row.framework, row.version, ...marks, USER_WORDS[name] ?? '**not seen**']]
  })
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function mark(alone: Observation, guarded: Observation): string {
  const [before, after] = [alone, guarded].map(({ holds }) => (holds ? 'yes' : 'no'))
  return before === after ? `${before} → ${after}` : `${before} → **${after}**`
}
