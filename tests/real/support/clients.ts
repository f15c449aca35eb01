import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { KEYS } from '../../support/keys.ts'
import { serve, type Served } from './served.ts'

/** One client, connected. */
export interface RealClient {
  list(): Promise<readonly string[]>
  /** Returns the first text of the result. */
  call(name: string, args: object): Promise<string>
  close(): Promise<void>
}

export type Connect = (url: string, key: string) => Promise<RealClient>

interface Line {
  readonly answer?: unknown
  readonly error?: string
}

/**
 * A client of another language, as a program: it is given the URL, the key and the era, and answers each line of its input
 * with a line.
 */
export function programClient(command: string, args: readonly string[], era: 'legacy' | 'modern'): Connect {
  return async (url, key) => {
    const child = spawn(command, [...args, url, key, era], { stdio: ['pipe', 'pipe', 'pipe'] })
    let printed = ''
    child.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    child.stdin.on('error', () => undefined)
    const ended = once(child, 'exit')
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const act = async (asked: object): Promise<unknown> => {
      child.stdin.write(`${JSON.stringify(asked)}\n`)
      const { value, done } = await lines.next()
      if (done === true) throw new Error(`${command} ended:\n${printed}`)
      const { answer, error } = JSON.parse(value) as Line
      if (error !== undefined) throw new Error(`${error}\n${printed}`)
      return answer
    }
    return {
      list: async () => (await act({})) as readonly string[],
      call: async (name, given) => textOf(await act({ name, arguments: given })),
      close: async () => {
        child.stdin.end()
        child.kill()
        await ended
      },
    }
  }
}

/** Returns the first text of a result. */
export function textOf(result: unknown): string {
  return (result as { content: readonly { text: string }[] }).content[0]?.text ?? ''
}

const SLOW = path.join(import.meta.dirname, '../../support/slow-server.js')

/** Declares the tests of clients: each lists and calls, and does so again on the same object after a restart of the gateway. */
export function describeClients(clients: Readonly<Record<string, Connect>>): void {
  describe('a client keeps working', () => {
    let gateway: Served
    before(async () => {
      gateway = await serve({ slow: { command: process.execPath, args: [SLOW] } })
    })
    after(() => gateway?.stop())

    for (const [name, connect] of Object.entries(clients))
      for (const signal of ['SIGTERM', 'SIGKILL'] as const)
        it(`${name}, after the gateway ended with ${signal} and started again`, async () => {
          const client = await connect(gateway.url, KEYS.admin)
          try {
            const names = await client.list()
            assert.ok(names.includes('slow__echo'), names.join())
            assert.equal(await client.call('slow__echo', {}), 'echo')
            await gateway.restart(signal)
            assert.equal(await client.call('slow__echo', {}), 'echo')
            assert.deepEqual(await client.list(), names)
          } finally {
            await client.close()
          }
        })
  })
}
