import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { ERAS, type RpcAnswer, toMessage } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const PAGE = readFileSync(resolve(import.meta.dirname, '../docs/guide/limits.md'), 'utf8')
const [, EXAMPLE = ''] = /^## A limit per tenant$[^]*?```yaml\n([^]*?)```/m.exec(PAGE) ?? []

describe('the limit per tenant of docs/guide/limits.md', () => {
  for (const era of ERAS)
    it(`counts all users of a tenant together, in ${era}, and survives a restart`, async (t) => {
      const folder = tempFolder()
      t.after(folder.remove)
      const file = join(folder.path, 'toolgate.yaml')
      const servers = { own: { command: process.execPath, args: [SERVER], per: 'shared' } }
      writeFileSync(
        file,
        `listen: { port: 0 }\nservers: ${JSON.stringify(servers)}\naudit: { store: memory }\n${EXAMPLE}`,
      )
      let gateway: TestGateway = await startTestGateway(loadConfig(file))
      t.after(() => gateway.close())
      const call = async (key: string, name = 'own__echo') => {
        const { headers, body } = toMessage(era, 'tools/call', { name, arguments: {} })
        const answer = await send(gateway.mcpUrl, {
          headers: { ...headers, authorization: `Bearer ${key}` },
          body: JSON.stringify(body),
        })
        const { result } = answer.json() as RpcAnswer
        return result?.isError ? /\(\d+\/\d+\)/.exec(JSON.stringify(result.content))?.[0] : 'done'
      }
      const vera = [await call('acme-vera-key'), await call('acme-vera-key', 'own__pid'), await call('acme-vera-key')]
      assert.deepEqual(vera, ['done', 'done', '(2/86400)'])
      await gateway.close()
      gateway = await startTestGateway(loadConfig(file))
      assert.deepEqual([await call('acme-vera-key'), await call('acme-udo-key')], ['(2/86400)', 'done'])
      assert.equal(await call('acme-udo-key'), '(3/86400)')
      assert.deepEqual([await call('zeta-ann-key'), await call('zeta-ann-key')], ['done', 'done'])
    })
})
