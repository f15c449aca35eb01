import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { tempFolder } from '../../support/gateway.ts'
import { KEYS } from '../../support/keys.ts'
import { freePort } from '../../support/own-server.ts'

/** `toolgate serve` as a process of its own, at a port that a restart keeps. */
export interface Served {
  readonly url: string
  /** Ends the process and starts it again from the same file. */
  restart(signal?: NodeJS.Signals): Promise<void>
  stop(): Promise<void>
}

const BIN = path.join(import.meta.dirname, '../../../packages/cli/bin/toolgate.js')

/** Serves `servers`, as the file writes them, to a caller who may use everything. Its state outlives a restart. */
export async function serve(servers: Readonly<Record<string, object>>): Promise<Served> {
  const folder = tempFolder()
  const config = path.join(folder.path, 'toolgate.yaml')
  const port = await freePort()
  const file = {
    listen: { port },
    servers,
    callers: [{ key: KEYS.admin, user: 'admin' }],
    policy: [{ allow: ['*', 'resource:*:*', 'prompt:*:*'] }],
    state: { path: path.join(folder.path, 'state.db') },
    audit: { store: 'memory' },
  }
  // JSON is YAML, too.
  writeFileSync(config, JSON.stringify(file))
  const { PORT: _, ...env } = process.env
  const args = ['--conditions=toolgate-source', BIN, 'serve', '--config', config]
  const start = async () => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...env, NO_COLOR: '1' } })
    let printed = ''
    child.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    const ready = once(createInterface({ input: child.stdout }), 'line')
    const early = once(child, 'exit').then(() => Promise.reject(new Error(printed)))
    await Promise.race([ready, early])
    early.catch(() => undefined)
    return child
  }
  let child = await start()
  const end = async (signal: NodeJS.Signals) => {
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async restart(signal = 'SIGTERM') {
      await end(signal)
      child = await start()
    },
    async stop() {
      await end('SIGKILL')
      folder.remove()
    },
  }
}
