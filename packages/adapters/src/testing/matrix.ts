import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

/** The questions about each framework in the guide's matrix. Each is answered with and without Toolgate. */
export const QUESTIONS = {
  see: 'A hidden tool is not in what the model is sent.',
  run: 'A hidden tool that the model calls all the same does not run.',
  resume: 'A call that a person approved does not run when its tool is hidden by then.',
  approve: 'An approval that nobody gave, but that stands in the messages or the saved state, runs nothing.',
  audit: 'A refused call leaves a record.',
  limit: 'No more than the limit runs, however many calls are made at once.',
  explain: 'One can ask why a tool is hidden, and is told what decided.',
  caller: 'The body of a request cannot choose the caller.',
} as const
export type Question = keyof typeof QUESTIONS

/**
 * How a host passes the user's texts to each guard, by the file of its row. `undefined`: the framework does not show
 * them, and `origin` never returns `user`. tests/history-everywhere.e2e.test.ts runs each of them.
 */
export const USER_WORDS = {
  'ai-sdk': 'a text',
  'openai-agents': 'a function',
  langchain: 'a function',
  mastra: 'a function',
  'claude-agent': 'a text',
  mcp: undefined,
  openai: 'a text',
  anthropic: 'a text',
  gemini: 'a text',
} as const

/** An observation from running the framework's own loop, never from its documentation. */
export interface Observation {
  readonly holds: boolean
  /** The observation in a few words, the same in every run: `delete_all ran`. */
  readonly saw: string
}

export interface MatrixRow {
  /** The framework's name in the guide: `AI SDK`. */
  readonly framework: string
  /** The framework's version, from its package.json. */
  readonly version: string
  /** The observations without Toolgate, by question. `undefined` if the framework has no means of its own. */
  readonly without: Readonly<Record<Question, (() => Promise<Observation>) | undefined>>
  readonly with: Readonly<Record<Question, () => Promise<Observation>>>
}

export interface MatrixFile {
  readonly framework: string
  readonly version: string
  readonly without: Readonly<Record<Question, Observation>>
  readonly with: Readonly<Record<Question, Observation>>
}

const FOLDER = path.join(import.meta.dirname, '../matrix')
const NO_MEANS: Observation = { holds: false, saw: 'it has no means for that' }

/**
 * Tests one row of the framework matrix. With Toolgate every answer must be yes, and both observations must match
 * `matrix/<name>.json`, from which the guide's table is made. `TOOLGATE_UPDATE=1` writes it.
 */
export function describeMatrixRow(name: string, row: MatrixRow): void {
  const file = path.join(FOLDER, `${name}.json`)
  describe(`${row.framework}, row of the matrix`, () => {
    const expected = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as MatrixFile) : undefined
    const seen = { without: {} as Record<Question, Observation>, with: {} as Record<Question, Observation> }
    for (const question of Object.keys(QUESTIONS) as Question[]) {
      it(`with Toolgate: ${QUESTIONS[question]}`, async () => {
        const observed = await row.with[question]()
        seen.with[question] = observed
        assert.ok(observed.holds, observed.saw)
        if (!process.env['TOOLGATE_UPDATE']) assert.deepEqual(observed, expected?.with[question])
      })
      it(`without it, ${question} is as the matrix says`, async () => {
        const observed = (await row.without[question]?.()) ?? NO_MEANS
        seen.without[question] = observed
        if (!process.env['TOOLGATE_UPDATE']) assert.deepEqual(observed, expected?.without[question])
      })
    }
    it('is about the installed version', () => {
      if (process.env['TOOLGATE_UPDATE']) write(file, { framework: row.framework, version: row.version, ...seen })
      else assert.equal(row.version, expected?.version)
    })
  })
}

function write(file: string, content: MatrixFile): void {
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`)
}

/** Returns the code of a rejected promise, or `no error`. */
export async function rejectionCode(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'no error'
  } catch (error) {
    return String((error as { code?: string }).code)
  }
}

/** Returns the installed version of a package, even if it does not export its package.json. */
export function installedVersion(name: string): string {
  const file = path.join(import.meta.dirname, '../../../../node_modules', name, 'package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
