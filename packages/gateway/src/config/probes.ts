import path from 'node:path'
import { didYouMean } from '@toolgate/core/internal'
import { parseAddress } from './address.ts'
import type { CommandProbeConfig, HttpProbeConfig, ProbeConfig, TcpProbeConfig } from './config.ts'
import { checkShape, found, reportUnknownKey } from './explain.ts'
import type { ConfigPath } from './problems.ts'
import { keysOf, lengthOf, type Reading } from './reading.ts'
import { probeSchemas } from './schema.ts'
import { toFolder } from './servers.ts'

type Kind = keyof typeof probeSchemas
const KINDS = Object.keys(probeSchemas) as readonly Kind[]

/** Reads the probes of a group: each by itself, so that one bad probe does not hide the problems of another. */
export function readProbes(reading: Reading, at: ConfigPath): readonly ProbeConfig[] {
  return Array.from({ length: lengthOf(reading.source, at) }, (_, i) => [...at, i]).flatMap((place) => {
    const kind = kindOf(reading, place)
    const probe = kind && readProbe(reading, place, kind)
    return probe ? [probe] : []
  })
}

/** Gives what a probe asks: the one key that says so. */
function kindOf({ source }: Reading, at: ConfigPath): Kind | undefined {
  const keys = keysOf(source, at)
  const [kind, other] = KINDS.filter((one) => keys.includes(one))
  if (kind && other) {
    source.report([...at, other], `found "${kind}" and "${other}" in one probe, expected a probe for each`, {
      atKey: true,
    })
    return undefined
  }
  if (kind) return kind
  const [first] = keys
  if (first === undefined)
    source.report(at, `${found(source, at)}, expected a probe: a mapping with one of ${KINDS.join(', ')}`)
  else reportUnknownKey(source, at, first, KINDS)
  return undefined
}

function readProbe(reading: Reading, at: ConfigPath, kind: Kind): ProbeConfig | undefined {
  const { source } = reading
  switch (kind) {
    case 'env':
      return present(checkShape(source, at, probeSchemas.env))
    case 'tcp':
      return readTcp(reading, at)
    case 'http':
      return readHttp(reading, at)
    case 'command':
      return readCommand(reading, at)
    case 'server':
      return readServer(reading, at)
  }
}

function readTcp({ source }: Reading, at: ConfigPath): TcpProbeConfig | undefined {
  const input = checkShape(source, at, probeSchemas.tcp)
  if (!input) return undefined
  const tcp = parseAddress(input.tcp)
  const place = [...at, 'tcp']
  if (tcp) return present({ ...input, tcp })
  source.report(
    place,
    `${found(source, place)}, expected host:port such as "127.0.0.1:4444", or a port from 1 to 65535`,
  )
  return undefined
}

function readHttp({ source }: Reading, at: ConfigPath): HttpProbeConfig | undefined {
  const input = checkShape(source, at, probeSchemas.http)
  if (!input) return undefined
  const place = [...at, 'http']
  const url = URL.parse(input.http)
  if (url?.username || url?.password) {
    source.report(place, 'found a user or password in the URL, expected them in "headers"')
    return undefined
  }
  if (!url || !/^https?:$/.test(url.protocol)) {
    source.report(place, `${found(source, place)}, expected a URL such as "http://127.0.0.1:9200/health"`)
    return undefined
  }
  const { status, ...rest } = input
  return present({ ...rest, ...(status === undefined ? {} : { status: [status].flat() }) })
}

function readCommand(reading: Reading, at: ConfigPath): CommandProbeConfig | undefined {
  const { source, configDir } = reading
  const input = checkShape(source, at, probeSchemas.command)
  if (!input) return undefined
  const [program = '', ...args] = input.command
  const place = [...at, 'command', 0]
  if (program.trim() === '') source.report(place, `${found(source, place)}, expected the name of a program`)
  // A path would be looked for from the command's own folder; a bare name is looked for on PATH.
  const resolved = program.includes('/') ? path.resolve(configDir, program) : program
  const cwd = toFolder(reading, [...at, 'cwd'], input.cwd)
  return present({ ...input, command: [resolved, ...args] as const, cwd })
}

function readServer({ source }: Reading, at: ConfigPath): ProbeConfig | undefined {
  const input = checkShape(source, at, probeSchemas.server)
  if (!input) return undefined
  const servers = keysOf(source, ['servers'])
  if (!servers.includes(input.server))
    source.report(
      [...at, 'server'],
      `no server is named ${JSON.stringify(input.server)}${didYouMean(input.server, servers)}`,
    )
  return input
}

/** The schema writes no `undefined`: absent fields stay absent. */
function present<T>(input: T | undefined): { readonly [K in keyof T]: Exclude<T[K], undefined> } | undefined {
  return input as { readonly [K in keyof T]: Exclude<T[K], undefined> } | undefined
}
