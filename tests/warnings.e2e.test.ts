import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { WarningsBody } from '@toolgate/gateway'
import { startTestGateway } from './support/gateway.ts'
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
})
