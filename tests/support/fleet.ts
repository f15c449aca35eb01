import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { loadConfig, type ReadyBody } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway, until } from './gateway.ts'
import { startHaproxy } from './haproxy.ts'
import { type Answer, send } from './http.ts'
import { KEYS, type Who } from './keys.ts'
import { freePort, type OwnServer } from './own-server.ts'
import { type OwnPostgres, ownPostgres } from './own-stores.ts'
import { type Era, type Params, type RpcAnswer, toMessage } from './rpc.ts'

export const FLEET_PROGRAMS = ['postgres', 'initdb', 'haproxy'] as const

export interface FleetRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | object
}

/** Three gateways on one Postgres, behind an HAProxy that sends each request to the next of them. */
export interface Fleet {
  /** The address of HAProxy, which is the `publicUrl` of all. */
  readonly url: string
  readonly gateways: readonly TestGateway[]
  /** A free port for each gateway, which its configuration has as `${file:port}`. */
  readonly ownPorts: readonly number[]
  readonly postgres: OwnPostgres
  /** Sends a request of an agent to HAProxy, or to one of the gateways. */
  ask(who: Who, era: Era, method: string, params?: Params, to?: { readonly url: string }): Promise<RpcAnswer>
  /** Sends any other request, with the key of the console unless it has a cookie or a key. An object is sent as JSON. */
  http(path: string, request?: FleetRequest, to?: { readonly url: string }): Promise<Answer>
  /** Resolves when HAProxy sends requests to all of them. */
  inTurn(): Promise<void>
  /** Stops a gateway, and starts another one on its port. */
  replace(at: number): Promise<void>
}

/** Starts a fleet for the tests of this `describe`, and stops it after them. `lines` are those of its configuration. */
export function ownFleet(
  paths: Readonly<Record<(typeof FLEET_PROGRAMS)[number], string>>,
  lines: (fleet: Pick<Fleet, 'url'>) => string | Promise<string>,
): Fleet {
  const folder = tempFolder()
  const gateways: TestGateway[] = []
  let ports: readonly number[] = []
  let ownPorts: readonly number[] = []
  let proxy: OwnServer | undefined
  let file = ''
  // Before their database is.
  after(async () => {
    await Promise.all(gateways.map((gateway) => gateway.close()))
    await proxy?.stop()
    folder.remove()
  })
  const postgres = ownPostgres(paths)

  const start = async (port: number) => {
    const home = join(folder.path, String(port))
    mkdirSync(home, { recursive: true })
    writeFileSync(join(home, 'port'), String(ownPorts[ports.indexOf(port)]))
    const path = join(home, 'toolgate.yaml')
    writeFileSync(path, `listen: { port: ${port}, proxies: [127.0.0.1] }\n${file}`)
    return startTestGateway(loadConfig(path))
  }
  const fleet: Fleet = {
    get url() {
      return `http://127.0.0.1:${proxy?.port}`
    },
    gateways,
    get ownPorts() {
      return ownPorts
    },
    postgres,
    async ask(who, era, method, params, { url } = fleet) {
      const { headers, body } = toMessage(era, method, params)
      const credential = { authorization: `Bearer ${KEYS[who]}` }
      return (
        await send(`${url}/mcp`, { headers: { ...headers, ...credential }, body: JSON.stringify(body) })
      ).json() as RpcAnswer
    },
    http(path, { method, headers = {}, body } = {}, { url } = fleet) {
      const isOpen = 'cookie' in headers || 'authorization' in headers
      const sent = typeof body === 'object' ? JSON.stringify(body) : body
      return send(`${url}${path}`, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: {
          ...(!isOpen && { authorization: `Bearer ${KEYS.console}` }),
          ...(typeof body === 'object' && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(sent !== undefined && { body: sent }),
      })
    },
    inTurn: () =>
      until(async () => {
        const seen = new Set<unknown>()
        for (const _ of ports) {
          const { status, text } = await send(`${fleet.url}/readyz`, { method: 'GET' })
          if (status === 200) seen.add((JSON.parse(text) as ReadyBody).replica?.id)
        }
        return seen.size === ports.length
      }).then(() => undefined),
    async replace(at) {
      await gateways[at]?.close()
      gateways[at] = await start(ports[at] ?? 0)
      await fleet.inTurn()
    },
  }

  before(async () => {
    ports = await Promise.all([freePort(), freePort(), freePort()])
    ownPorts = await Promise.all([freePort(), freePort(), freePort()])
    proxy = await startHaproxy(paths.haproxy, await freePort(), ports)
    file = `
publicUrl: "${fleet.url}"
drainMs: 5000
stores: { postgres: "${postgres.url}" }
${await lines(fleet)}
`
    // The first publishes its file.
    for (const port of ports) gateways.push(await start(port))
    await fleet.inTurn()
  })
  return fleet
}
