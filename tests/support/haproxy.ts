import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type OwnServer, startOwnServer } from './own-server.ts'

/** Starts HAProxy in front of gateways: each request goes to the next one that is ready, whatever client it is of. */
export function startHaproxy(command: string, at: number, ports: readonly number[]): Promise<OwnServer> {
  const servers = ports.map((port, i) => `  server r${i} 127.0.0.1:${port}`).join('\n')
  return startOwnServer({
    command,
    port: at,
    prepare: ({ folder, port }) => writeFileSync(join(folder, 'haproxy.cfg'), fileOf(port, servers)),
    args: () => ['-f', 'haproxy.cfg', '-db', '-q'],
  })
}

const fileOf = (port: number, servers: string) => `
defaults
  mode http
  timeout connect 1s
  # A busy machine is slow, and no replica is gone for that.
  timeout check 10s
  timeout client 1h
  timeout server 1h
  retries 3
  option redispatch 1
frontend clients
  bind 127.0.0.1:${port}
  default_backend gateways
backend gateways
  balance roundrobin
  option httpchk GET /readyz
  default-server check inter 200ms fall 1 rise 1
${servers}
`
