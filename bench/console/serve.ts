import { readConfig, startGateway } from '@toolgate/gateway'

/** A gateway in a process of its own: `CONFIG` is its file, `PORT` where it listens, `CONSOLE` the built console. */
const { CONFIG = '', PORT = '0', CONSOLE = '' } = process.env
const config = await readConfig(CONFIG)
const gateway = await startGateway(
  { ...config, listen: { ...config.listen, port: Number(PORT) } },
  { consoleDir: CONSOLE, log: ({ level, message }) => void (level === 'error' && console.error(message)) },
)
await gateway.ready
console.error(`ready with ${gateway.gate.catalog.snapshot().tools.length} tools`)
process.on('SIGTERM', () => void gateway.close().then(() => process.exit()))
