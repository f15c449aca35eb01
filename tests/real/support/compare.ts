import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { toWireName } from '@toolgate/expose'
import { send } from '../../support/http.ts'
import { KEYS } from '../../support/keys.ts'
import { freePort, type OwnServer, startOwnServer } from '../../support/own-server.ts'
import { MODERN, type Params, type RpcAnswer } from '../../support/rpc.ts'
import { type Door, openHttp, openStdio, type Started } from './door.ts'
import { serve, type Served } from './served.ts'

/** One request to a server and, through the gateway, to the same server. */
export interface Ask {
  readonly method: string
  readonly params: Params
  /** The gateway's answer if it differs: a part of its text, and the reason. */
  readonly ours?: readonly [string, string]
  /** Over HTTP, the direct way answers no requests of servers. */
  readonly onStdio?: true
}

export const BOTH = ['2025-11-25', MODERN] as const
type ServerEra = (typeof BOTH)[number]

/** A server as people install it. */
export interface RealServer {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Arguments that serve it over HTTP at `/mcp`, for servers that can. */
  readonly httpArgs?: (port: number) => readonly string[]
  readonly eras: readonly ServerEra[]
  /** The eras over HTTP, if they are others. */
  readonly httpEras?: readonly ServerEra[]
  /** How many tools, resources, templates and prompts it lists, so that an empty list is no success. */
  readonly lists: readonly [number, number, number, number]
  readonly asks: readonly Ask[]
  /** What else the file says about it. */
  readonly given?: object
}

export const call = (name: string, input: object, ours?: Ask['ours']): Ask => ({
  method: 'tools/call',
  params: { name, arguments: input },
  ...(ours && { ours }),
})
export const read = (uri: string, ours?: Ask['ours']): Ask => ({
  method: 'resources/read',
  params: { uri },
  ...(ours && { ours }),
})
export const prompt = (name: string, input: object, ours?: Ask['ours']): Ask => ({
  method: 'prompts/get',
  params: { name, arguments: input },
  ...(ours && { ours }),
})

/** Reasons that many servers share. The guide lists them. */
export const CHECKED = 'the gateway checks an input before it decides, so the server does not see an invalid one'
export const UNKNOWN = 'an unknown item and one that the caller may not see get the same answer'

const LISTS = [
  ['tools/list', 'tools'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resourceTemplates'],
  ['prompts/list', 'prompts'],
] as const
const METHOD_NOT_FOUND = -32_601
/** The server's name in the file. */
const NAMESPACE = 's'
const START_MS = 60_000

/** Declares the tests of a server: on stdio and over HTTP, in each era, lists and answers are those that it gives directly. */
export function describeServer(server: RealServer, cwd: () => string): void {
  const { command, args, env = {}, httpArgs, eras, httpEras = eras } = server
  for (const era of eras)
    describe(`${server.name} on stdio, ${era}`, () => {
      const started = (): Started => ({ command, args, env, cwd: cwd() })
      compare(server, server.asks, era, { direct: () => openStdio(started(), era), behind: started })
    })
  if (httpArgs === undefined) return
  for (const era of httpEras)
    describe(`${server.name} over HTTP, ${era}`, () => {
      let http: OwnServer
      before(async () => {
        const port = await freePort()
        http = await startOwnServer({ command, args: () => httpArgs(port), port, isReady: answers })
      })
      const url = () => `http://127.0.0.1:${http.port}/mcp`
      const asks = server.asks.filter(({ onStdio }) => onStdio !== true)
      compare(server, asks, era, { direct: () => openHttp(url(), era), behind: () => ({ url: url() }) })
      // After both ways to it are closed.
      after(() => http?.stop())
    })
}

/** A server that listens may still refuse the path for a moment. */
const answers = async ({ port }: { readonly port: number }) =>
  send(`http://127.0.0.1:${port}/mcp`, { headers: { 'content-type': 'application/json' }, body: '{}' }).then(
    () => true,
    () => false,
  )

interface Ways {
  readonly direct: () => Promise<Door>
  readonly behind: () => object
}

function compare(server: RealServer, asks: readonly Ask[], era: ServerEra, { direct, behind }: Ways): void {
  let own: Door
  let gateway: Served
  /** Clients of both eras, whichever the server speaks. */
  let clients: readonly Door[] = []
  before(async () => {
    const offers = ['tools', 'resources', 'prompts']
    const speaks = { era: era === MODERN ? 'modern' : 'legacy', startTimeoutMs: START_MS }
    own = await direct()
    gateway = await serve({ [NAMESPACE]: { ...behind(), ...speaks, per: 'shared', offers, ...server.given } })
    const key = { authorization: `Bearer ${KEYS.admin}` }
    clients = await Promise.all(BOTH.map((clientEra) => openHttp(gateway.url, clientEra, key)))
  })
  after(async () => {
    for (const client of [...clients, own]) await client?.close()
    await gateway?.stop()
  })

  it('lists the same', async () => {
    for (const [i, [method, member]] of LISTS.entries()) {
      const theirs = itemsOf(await own.ask(method), member)
      assert.equal(theirs.length, server.lists[i], `${method} of the server: ${JSON.stringify(theirs)}`)
      const named = theirs.map((item) => withName(item, method))
      for (const client of clients)
        assert.deepEqual(itemsOf(await client.ask(method), member), named.toSorted(byKey), method)
    }
  })
  for (const { method, params, ours } of asks)
    it(`${method} ${JSON.stringify(params)}${ours ? `: differs, because ${ours[1]}` : ''}`, async () => {
      for (const client of clients) {
        // Once for each client, as a server may count.
        const theirs = ofHop(await own.ask(method, params))
        const answer = ofHop(await client.ask(method, withName(params, method)))
        if (ours === undefined) assert.deepEqual(answer, theirs)
        else {
          assert.notDeepEqual(answer, theirs, 'it no longer differs: remove the reason')
          assert.ok(JSON.stringify(answer).includes(ours[0]), JSON.stringify(answer))
        }
      }
    })
}

type Item = Readonly<Record<string, unknown>>

/** A server without a kind answers that there is no such method; the gateway has the kind, and an empty list. */
function itemsOf(answer: RpcAnswer, member: string): readonly Item[] {
  if (answer.error?.code === METHOD_NOT_FOUND) return []
  assert.ok(answer.result, JSON.stringify(answer))
  assert.equal(answer.result['nextCursor'], undefined)
  return (answer.result[member] as readonly Item[]).toSorted(byKey)
}

const keyOf = ({ uri, uriTemplate, name }: Item) => String(uri ?? uriTemplate ?? name)
const byKey = (a: Item, b: Item) => (keyOf(a) < keyOf(b) ? -1 : 1)

/**
 * Names of tools and prompts have the server's name before them, and `_` for characters that rules cannot hold. Where
 * clients could not use the rest either, the name on the wire has a hash.
 */
function withName<T extends Item>(item: T, method: string): T {
  if (!/^(tools|prompts)/.test(method)) return item
  const name = String(item['name']).replaceAll(/[ *]/g, '_')
  const id = `${method.startsWith('prompts') ? 'prompt:' : ''}${NAMESPACE}:${name}`
  return { ...item, name: toWireName({ id, namespace: NAMESPACE, name }) }
}

/** Leaves out what belongs to one hop: whose answer it is, how long it keeps, and the id. */
function ofHop({ result, error }: RpcAnswer): Item {
  if (result === undefined) return { error }
  const { _meta: meta, resultType: _, ttlMs: __, cacheScope: ___, ...rest } = result
  const { 'io.modelcontextprotocol/serverInfo': ____, ...more } = meta ?? {}
  return Object.keys(more).length === 0 ? rest : { ...rest, _meta: more }
}
