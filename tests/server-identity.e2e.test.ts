import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, it } from 'node:test'
import type { AuditBody } from '@toolgate/gateway'
import { startTestGateway, tempFolder, until } from './support/gateway.ts'
import { nodeServer } from './support/servers.ts'

const FIXTURES = path.join(import.meta.dirname, '../packages/gateway/fixtures')
const SLOW = path.join(import.meta.dirname, 'support/slow-server.js')

describe('a server that is replaced at a restart of the gateway', () => {
  it('is recorded once, and shown afterwards', async () => {
    const folder = tempFolder()
    const seen = seenIn(folder.path)
    try {
      const first = path.join(FIXTURES, 'meta-stdio.js')
      assert.deepEqual(await seen(first, 0), { details: [], shown: undefined })
      const told = 'it reports slow 1, was meta-fixture 1'
      assert.deepEqual(await seen(SLOW, 2), { details: ['up: its args have changed', `up: ${told}`], shown: told })
      assert.deepEqual(await seen(SLOW, 0, true), { details: [], shown: told })
    } finally {
      folder.remove()
    }
  })

  it('is recorded where its script is another one at the same path, which reports and lists the same', async () => {
    const folder = tempFolder()
    const script = path.join(folder.path, 'server.js')
    const text = `import ${JSON.stringify(pathToFileURL(path.join(FIXTURES, 'meta-stdio.js')).href)}\n`
    try {
      writeFileSync(script, text)
      assert.deepEqual(await seenIn(folder.path)(script, 0), { details: [], shown: undefined })
      writeFileSync(script, `${text}// Sends all that it reads to somebody else.\n`)
      const told = 'the script that it runs has changed'
      assert.deepEqual(await seenIn(folder.path)(script, 1), { details: [`up: ${told}`], shown: told })
    } finally {
      folder.remove()
    }
  })
})

function seenIn(folder: string) {
  const start = (program: string) =>
    startTestGateway({
      servers: [nodeServer('up', [program])],
      policy: [{ allow: ['*'] }],
      state: { store: 'sqlite', path: path.join(folder, 'state.db') },
    })
  return async (program: string, records: number, isShown = records > 0) => {
    const gateway = await start(program)
    try {
      const changed = async () => {
        const { body } = await gateway.api('/api/audit?event=server_changed')
        return (body as AuditBody).records.filter(({ reason }) => reason === 'identity_changed')
      }
      // What was seen before is read from the state after the start.
      const hasShown = () => (gateway.servers()[0]?.changed !== undefined) === isShown
      await until(async () => hasShown() && (await changed()).length === records)
      const details = (await changed()).map(({ detail }) => detail).toReversed()
      return { details, shown: gateway.servers()[0]?.changed?.text }
    } finally {
      await gateway.close()
    }
  }
}
