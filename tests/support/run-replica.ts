// A replica in a process of its own: node run-replica.ts FILE. Prints its address when its servers have answered.
import { loadConfig } from '@toolgate/gateway'
import { startTestGateway } from './gateway.ts'

const gateway = await startTestGateway(loadConfig(process.argv[2] ?? ''))
process.stdout.write(`${JSON.stringify({ url: gateway.url })}\n`)
