import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { createGate } from '@toolgate/core'
import { auditEntry } from '@toolgate/testing'
import { checkpointsPath, inputKeyOf } from './evidence.ts'
import { openAny } from './testing/open-any.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

for (const format of ['sqlite', 'jsonl'] as const) {
  describe(`the policies of an audit in ${format}`, () => {
    const TOOLS = { look: { execute: () => 'seen' } }

    it('are stored once for each hash, before the first record that names it, and can be found by it', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      const audit = openAny(format, { path })
      const gate = createGate({ tools: TOOLS, audit, policy: { name: 'first', allow: ['*'] } })
      const call = async () => (await gate.view({ user: 'vera' })).call({ tool: 'look', input: {} })
      await call()
      await call()
      gate.setPolicy({ name: 'second', allow: ['look'] })
      await call()
      gate.setPolicy({ name: 'first', allow: ['*'] })
      await call()
      const records = (await audit.query({ limit: 100 })).toReversed()
      const stored = records.filter(({ event }) => event === 'policy_recorded')
      assert.deepEqual(
        stored.map(({ policy = '' }) => JSON.parse(policy).policies[0].name),
        ['first', 'second'],
      )
      const known = new Set<string | undefined>()
      for (const { event, policy_hash: hash } of records) {
        if (event === 'policy_recorded') known.add(hash)
        else if (hash !== undefined) assert.ok(known.has(hash), 'a hash comes after its policy')
      }
      const decided = records.filter(({ event }) => event === 'tool_call').map(({ policy_hash: hash }) => hash)
      const [first, second] = stored.map(({ policy_hash: hash }) => hash)
      assert.deepEqual(decided, [first, first, second, first])
      await audit.close()
      assert.deepEqual((await verifyAudit({ path })).findings, [])
    })

    it('are not stored for an audit that no gate writes to', async (t) => {
      const audit = openAny(format, { path: join(scratchFolder(t), 'audit') })
      t.after(() => audit.close())
      await audit.write(auditEntry())
      assert.deepEqual(await audit.query({ event: 'policy_recorded' }), [])
    })
  })

  describe(`the hashes of inputs of an audit in ${format}`, () => {
    it('are keyed with a key that only the owner can read, and that later openings use again', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      const key = inputKeyOf(checkpointsPath(path))
      const hashes: (string | undefined)[] = []
      for (let i = 0; i < 2; i++) {
        const audit = openAny(format, { path })
        await audit.write(auditEntry({ input: { b: 1, a: 2 } }))
        const [record] = await audit.query({ event: 'tool_call', limit: 1 })
        hashes.push(record?.input_hash)
        await audit.close()
      }
      assert.equal(statSync(key).mode & 0o777, 0o600)
      assert.notEqual(dirname(key), dirname(path))
      const secret = Buffer.from(readFileSync(key, 'utf8').trim(), 'hex')
      assert.equal(secret.length, 32)
      const expected = `hmac-sha256:${createHmac('sha256', secret).update('{"a":2,"b":1}').digest('hex')}`
      assert.deepEqual(hashes, [expected, expected])
    })

    it('are keyed also where no checkpoints are made, and differ from audit to audit', async (t) => {
      const hashes = new Set<string | undefined>()
      for (const name of ['one', 'two']) {
        const path = join(scratchFolder(t), name)
        const audit = openAny(format, { path, checkpoints: false })
        await audit.write(auditEntry({ input: 1 }))
        hashes.add((await audit.query({ event: 'tool_call' }))[0]?.input_hash)
        await audit.close()
        assert.ok(existsSync(inputKeyOf(checkpointsPath(path))))
      }
      assert.equal(hashes.size, 2)
    })

    it('may be keyed with a key that is given', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      const audit = openAny(format, { path, inputKey: Buffer.alloc(32, 1) })
      t.after(() => audit.close())
      await audit.write(auditEntry({ input: 1 }))
      const digest = createHmac('sha256', Buffer.alloc(32, 1)).update('1').digest('hex')
      assert.equal((await audit.query({ event: 'tool_call' }))[0]?.input_hash, `hmac-sha256:${digest}`)
      assert.equal(existsSync(inputKeyOf(checkpointsPath(path))), false)
    })
  })
}
