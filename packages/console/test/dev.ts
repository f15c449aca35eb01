/** Serves the built console with made-up data, to look at it without a gateway. */
import { join } from 'node:path'
import { startFakeGateway } from './fake-gateway.ts'

const consoleDir = join(import.meta.dirname, '../../gateway/console')
const gateway = await startFakeGateway({ consoleDir, port: Number(process.env['PORT'] ?? 8788) })
console.log(`${gateway.url}/  key: demo-console`)
const timer = setInterval(() => gateway.record(1), 1500)
process.once('SIGINT', () => {
  clearInterval(timer)
  void gateway.close()
})
