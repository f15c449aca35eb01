import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { BUILTIN_TOOL_NAMES } from '@anthropic-ai/claude-agent-sdk'
import { fromClaudeAgent } from '@toolgate/adapters/claude-agent'

const ROOT = path.resolve(import.meta.dirname, '../..')

describe('the types of the Claude Agent SDK', () => {
  it('are those of what guard takes and gives, as these tests compile with them', async () => {
    const tsc = path.join(ROOT, 'node_modules/.bin/tsc')
    const compiling = promisify(execFile)(tsc, ['-p', import.meta.dirname], { cwd: ROOT })
    const output = await compiling.then(({ stdout }) => stdout).catch((error: { stdout: string }) => error.stdout)
    assert.equal(output, '')
  })
})

describe('the built-ins of the Claude Agent SDK', () => {
  it('are known by name: an import of them warns about none', async () => {
    const warnings: string[] = []
    const listen = ({ message }: Error) => void warnings.push(message)
    process.on('warning', listen)
    assert.deepEqual(Object.keys(fromClaudeAgent(BUILTIN_TOOL_NAMES)), [...BUILTIN_TOOL_NAMES])
    await new Promise(setImmediate)
    process.off('warning', listen)
    assert.deepEqual(warnings, [])
  })
})
