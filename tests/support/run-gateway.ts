// A gateway in a process of its own: node run-gateway.ts SERVERS-JSON. Prints its address when its servers have answered.
import { startTestGateway } from './gateway.ts'
import { serverConfig, type ServerConfig } from './servers.ts'

const given = JSON.parse(process.argv[2] ?? '[]') as (Partial<ServerConfig> & { name: string })[]
const servers = given.map(({ tools: _, ...server }) => serverConfig(server.name, server))
const gateway = await startTestGateway({ servers })
process.stdout.write(`${JSON.stringify({ url: gateway.url, servers: gateway.servers() })}\n`)
