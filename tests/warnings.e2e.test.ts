import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { WarningsBody } from '@toolgate/gateway'
import { startTestGateway, until } from './support/gateway.ts'
import { Witness } from './support/items-witness.ts'
import { hostEarlier, hostModern } from './support/mcp-host.ts'
import { startRecordingServer } from './support/recording-server.ts'
import { httpServer } from './support/servers.ts'

/** Unknown names are in the log at start, the API and the metrics. A server that is down causes no warning. */

describe('a gateway whose policy has unknown names', () => {
  it('logs a line for each at start, and shows them in the API and the metrics', async () => {
    const bank = await startRecordingServer([{ name: 'pay' }, { name: 'look' }])
    const gateway = await startTestGateway({
      servers: [
        httpServer('bank', bank.url, { tools: new Map([['lok', { tags: ['read'] }]]) }),
        httpServer('away', 'http://127.0.0.1:9/mcp'),
      ],
      policy: [{ deny: ['bank:payy', 'away:anything'] }],
      limits: ['bank:lookk:1/60'],
      calls: { concurrency: ['bank:*:2', 'bank:lok:1'] },
    })
    try {
      const lines = gateway.log.filter(({ level, server }) => level === 'warn' && server === undefined)
      assert.deepEqual(lines.map(({ message }) => message.split(';')[0]).toSorted(), [
        'calls.concurrency[1]: "bank:lok" names no tool',
        'limits[0]: "bank:lookk" names no tool',
        'policy[0].deny[0]: "bank:payy" names no tool',
        'servers.bank.tools.lok: "lok" names no tool of the server',
      ])
      const { body } = await gateway.api('/api/warnings')
      const { warnings } = body as WarningsBody
      assert.deepEqual(warnings.flatMap(({ code, path }) => (code === 'selector_unmatched' ? [path] : [])).toSorted(), [
        'calls.concurrency[1]',
        'limits[0]',
        'policy[0].deny[0]',
        'servers.bank.tools.lok',
      ])
      const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: 'Bearer demo-console' } })
      assert.match(await metrics.text(), /^toolgate_policy_warnings\{code="selector_unmatched"\} 4$/m)
    } finally {
      await gateway.close()
      await bank.close()
    }
  })

  for (const host of [hostEarlier, hostModern])
    it(`names rules about templates and URIs that its server does not have (${host.name})`, async () => {
      const server = await host(new Witness().answer)
      const gateway = await startTestGateway({
        servers: [httpServer('files', server.url, { offers: ['tools', 'resources'] })],
        policy: [
          {
            allow: ['*', 'resource:files:*'],
            deny: [
              'resource:files:file:///work/{name}',
              'resource:files:file:///secret/{name}',
              'resource:files:file:///work/../secret/key',
              'resource:files:file:///nobody/lists/this',
            ],
          },
        ],
      })
      const warned = () =>
        gateway.log
          .filter(({ level, message }) => level === 'warn' && message.startsWith('policy['))
          .map(({ message }) => message)
      const expected = [
        'policy[0].deny[1]: "resource:files:file:///secret/{name}" names no template: its server does not list it',
        'policy[0].deny[2]: "resource:files:file:///work/../secret/key" names no resource: it is not in normal form, and its server does not list it',
      ]
      try {
        await until(() => warned().length >= expected.length)
        assert.deepEqual(warned(), expected)
        const { body } = await gateway.api('/api/warnings')
        const paths = (body as WarningsBody).warnings.flatMap(({ code, path }) =>
          code === 'selector_unmatched' ? [path] : [],
        )
        assert.deepEqual(paths, ['policy[0].deny[1]', 'policy[0].deny[2]'])
      } finally {
        await gateway.close()
        await server.close()
      }
    })
})
