import { toBody, toHeaders } from '../../../bench/wire.js'
import { recordGatewayCall } from './gateway.ts'

await recordGatewayCall((name) => {
  const pairs = toHeaders('tools/call', name, undefined)
  const headers = Object.fromEntries(pairs.flatMap((text, i) => (i % 2 === 0 ? [[text, pairs[i + 1] ?? '']] : [])))
  return { headers, body: toBody(1, 'tools/call', { name, arguments: { path: '/workspace/a.txt' } }) }
})
