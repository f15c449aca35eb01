import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

/** Each example prints its `output.txt`, so that both can be read side by side. `TOOLGATE_UPDATE=1` rewrites it. */
const programs = globSync('*/main.ts', { cwd: import.meta.dirname })
  .filter((program) => !hasOwnPackages(program))
  .toSorted()
/** The packages that each needs beside Toolgate. */
const STORIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['ai-sdk', ['ai', 'ai/test', 'zod']],
  ['chat-bot', ['ai', 'zod']],
  ['group-chat', []],
  ['langchain', ['@langchain/langgraph', 'langchain']],
  [
    'mastra',
    [
      '@mastra/core',
      '@mastra/core/agent',
      '@mastra/core/llm',
      '@mastra/core/request-context',
      '@mastra/core/storage',
      '@mastra/core/tools',
      'zod',
    ],
  ],
  ['mcp-adapter', ['@modelcontextprotocol/client', '@modelcontextprotocol/server']],
  ['one-catalog-three-providers', []],
  ['one-door', []],
  ['openai-agents', ['@openai/agents', '@openai/agents/testing']],
  ['phased-research', ['ai', 'zod']],
  ['plain-openai', ['openai']],
  ['planner', []],
  ['role-based-access', ['ai', 'zod']],
  ['seven-apps', []],
])
const runProgram = promisify(execFile)

describe('the examples', { concurrency: 4 }, () => {
  for (const program of programs) {
    const file = path.join(import.meta.dirname, program)
    const story = path.dirname(file)

    it(`${path.basename(story)} prints its output.txt`, async () => {
      const { stdout, stderr } = await runProgram(process.execPath, ['--conditions=toolgate-source', file])
      const output = path.join(story, 'output.txt')
      if (process.env['TOOLGATE_UPDATE']) writeFileSync(output, stdout)
      assert.equal(stderr, '')
      assert.equal(stdout, readFileSync(output, 'utf8'))
    })

    it(`${path.basename(story)} fits on a screen or two, and imports what it needs`, () => {
      const text = readFileSync(file, 'utf8')
      assert.ok(text.split('\n').length <= 90)
      const imported = [...text.matchAll(/ from '([^'.][^']*)'/g)].map(([, name]) => name as string)
      const others = imported.filter((name) => !name.startsWith('@toolgate/'))
      assert.deepEqual(new Set(others), new Set(STORIES.get(path.basename(story))))
    })
  }

  it('are all listed', () => {
    assert.deepEqual(
      programs.map((program) => path.dirname(program)),
      [...STORIES.keys()],
    )
  })
})

/** Those of `genkit` are large: its own e2e test runs it. */
function hasOwnPackages(program: string): boolean {
  return existsSync(path.join(import.meta.dirname, path.dirname(program), 'package.json'))
}
