import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { createGate, defineTool, type Tool, type View } from '@toolgate/core'
import { expose } from './expose.ts'
import type { ExposeOptions, ExposeTarget } from './options.ts'

/** What real servers' tools are for each target. `TOOLGATE_UPDATE=1` writes it anew. */
const SNAPSHOTS: readonly (readonly [file: string, target: ExposeTarget, options?: ExposeOptions])[] = [
  ['openai-chat', 'openai-chat'],
  ['openai-chat-strict', 'openai-chat', { strict: true }],
  ['openai-responses', 'openai-responses'],
  ['anthropic', 'anthropic'],
  ['anthropic-strict', 'anthropic', { strict: true }],
  ['gemini', 'gemini'],
  ['gemini-openapi', 'gemini', { schemas: 'openapi' }],
  ['bedrock', 'bedrock'],
  ['mcp', 'mcp'],
  ['langchain', 'langchain'],
  ['ai-sdk', 'ai-sdk'],
]

const require = createRequire(import.meta.url)
const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-expose-'))
let view: View

before(async () => {
  const tools = [
    ...(await toolsOf('everything', 'server-everything')),
    ...(await toolsOf('files', 'server-filesystem', folder)),
    ...(await toolsOf('memory', 'server-memory')),
  ]
  view = await createGate({ tools }).view({ user: 'vera' })
})
after(() => rmSync(folder, { recursive: true, force: true }))

describe('expose, with the tools of three real MCP servers', () => {
  it('has 36 tools to expose', () => assert.equal(view.size, 36))

  for (const [name, target, options] of SNAPSHOTS) {
    it(`gives ${name} as in snapshots/${name}.json`, () => {
      const { tools, warnings, errors, tokens, bytes } = expose(view, target, options)
      const file = path.join(import.meta.dirname, 'snapshots', `${name}.json`)
      const text = `${JSON.stringify({ bytes, tokens, errors, warnings, tools }, null, 1)}\n`
      if (process.env['TOOLGATE_UPDATE']) writeFileSync(file, text)
      assert.equal(text, readFileSync(file, 'utf8'))
    })
  }
})

async function toolsOf(namespace: string, name: string, ...args: string[]): Promise<readonly Tool[]> {
  const file = require.resolve(`@modelcontextprotocol/${name}/dist/index.js`)
  const client = new Client({ name: 'snapshots', version: '1.0.0' })
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [file, ...args],
      stderr: 'ignore',
      env: { MEMORY_FILE_PATH: path.join(folder, 'memory.json') },
    }),
  )
  try {
    const { tools } = await client.listTools()
    return tools.map(({ name: own, title, description, inputSchema, outputSchema, annotations }) =>
      defineTool({
        namespace,
        name: own,
        title,
        description,
        inputSchema,
        outputSchema,
        annotations: annotations as object,
      }),
    )
  } finally {
    await client.close()
  }
}
