import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

import {
  descendantsOf,
  everythingOverHttp,
  HOSTILE,
  isAlive,
  nodeServer,
  SERVERS,
  until,
} from '../../fixtures/servers.ts'
import type { ServerConfig } from '../config/config.ts'
import { createReaper } from './reaper.ts'

const HOLDER = join(import.meta.dirname, '../../fixtures/hold-upstreams.ts')

/** Starts a process that holds these upstreams. Returns it and its children once all are ready. */
async function hold(
  t: TestContext,
  configs: readonly ServerConfig[],
): Promise<{ kill: () => void; started: number[] }> {
  const args = ['--conditions=toolgate-source', HOLDER, JSON.stringify(configs)]
  const holder = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => holder.kill('SIGKILL'))
  const [statuses] = (await holder.stdout.take(1).toArray()) as Buffer[]
  assert.deepEqual(
    JSON.parse(String(statuses)),
    configs.map(() => 'ready'),
  )
  assert.ok(holder.pid)
  return { kill: () => holder.kill('SIGKILL'), started: descendantsOf(holder.pid) }
}

/** A group of its own that ignores everything but SIGKILL. */
function startStubborn(t: TestContext): number {
  const child = spawn(process.execPath, [HOSTILE, 'stubborn'], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  t.after(() => child.kill('SIGKILL'))
  assert.ok(child.pid)
  return child.pid
}

describe('createReaper', () => {
  it('leaves nothing behind when its process is ended by kill -9', async (t) => {
    const { kill, started } = await hold(t, [
      nodeServer([SERVERS.memory]),
      everythingOverHttp(),
      nodeServer([HOSTILE, 'stubborn']),
      nodeServer([HOSTILE, 'grandchild']),
    ])
    // Four servers, the child of one, and the shell that watches them.
    assert.equal(started.length, 6)
    kill()
    await until(() => !started.some(isAlive), 3_000)
  })

  it('kills what it still watches when it is closed, and not what was released', async (t) => {
    const [watched, released] = [startStubborn(t), startStubborn(t)]
    const reaper = createReaper()
    reaper.watch(watched)
    reaper.watch(released)
    reaper.release(released)
    await reaper.close()
    await until(() => !isAlive(watched))
    assert.equal(isAlive(released), true)
  })

  it('starts its shell again when it is killed', async (t) => {
    const before = new Set(descendantsOf(process.pid))
    const shell = () => descendantsOf(process.pid).find((pid) => !before.has(pid) && pid !== watched && isAlive(pid))
    const watched = startStubborn(t)
    const reaper = createReaper()
    reaper.watch(watched)
    const first = await until(shell)
    process.kill(first, 'SIGKILL')
    await until(() => !isAlive(first))
    await until(() => {
      reaper.start()
      return shell()
    })
    await reaper.close()
    await until(() => !isAlive(watched))
  })

  it('does nothing when it was never used', async () => {
    await createReaper().close()
  })
})
