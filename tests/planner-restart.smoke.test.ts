import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { RunPaused, RunResult } from '@toolgate/planner'
import { tempFolder } from './support/gateway.ts'

/** A run pauses in a process that is killed, and resumes in another, exactly once. */

const PROGRAM = path.join(import.meta.dirname, 'support/planner-process.ts')

async function runProcess(...args: readonly string[]): Promise<unknown> {
  const child = spawn(process.execPath, ['--conditions=toolgate-source', '--no-warnings', PROGRAM, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(child, 'close')
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
}

async function pauseIn(t: TestContext): Promise<{
  readonly token: string
  readonly resume: (action: string, options?: object) => Promise<readonly RunResult[]>
  readonly ran: () => string
}> {
  const folder = tempFolder()
  t.after(() => folder.remove())
  const database = path.join(folder.path, 'state.db')
  const { status, resumeToken: token } = (await runProcess(database, 'run')) as RunPaused
  assert.equal(status, 'paused')
  return {
    token,
    resume: async (action, options = {}) =>
      (await runProcess(database, action, JSON.stringify({ token, approve: true, ...options }))) as RunResult[],
    ran: () => (existsSync(`${database}.ran`) ? readFileSync(`${database}.ran`, 'utf8') : ''),
  }
}

describe('a planner with its stores in SQLite', () => {
  it('resumes after its process was killed, and runs the approved call once', async (t) => {
    const { resume, ran } = await pauseIn(t)
    const [done] = await resume('resume')
    assert.deepEqual([done?.status, done?.text, ran()], ['done', 'Paid.', 'paid 5\n'])
    const [again] = await resume('resume')
    assert.deepEqual([again?.status, ran()], ['resume_refused', 'paid 5\n'])
  })

  it('resumes once, of 100 concurrent resumes in two processes', async (t) => {
    const { resume, ran } = await pauseIn(t)
    const both = await Promise.all([resume('resume', { times: 50 }), resume('resume', { times: 50 })])
    const counts = Map.groupBy(both.flat(), ({ status }) => status as string)
    assert.deepEqual([counts.get('done')?.length, counts.get('resume_refused')?.length], [1, 99])
    assert.equal(ran(), 'paid 5\n')
  })

  it('does not run the approved call of a tool whose definition changed at the restart', async (t) => {
    const { resume, ran } = await pauseIn(t)
    const [done] = await resume('resume-changed')
    assert.deepEqual([done?.status, ran()], ['done', ''])
  })
})
