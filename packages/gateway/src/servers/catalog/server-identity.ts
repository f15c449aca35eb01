import { isDeepStrictEqual } from 'node:util'
import type { AuditSink } from '@toolgate/core/audit'
import { isObject } from '@toolgate/values/json'
import { sha256Hex } from '@toolgate/values'
import type { Redactor } from '@toolgate/values/redact'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { ServerConfig } from '../../config/config.ts'
import type { UpstreamState } from '../../model/upstream.ts'
import type { ServerProgram, ProgramOf } from './program.ts'

/** A watched server. */
export interface WatchedServer {
  readonly config: Pick<ServerConfig, 'name' | 'url'> & ProgramOf
  readonly state: UpstreamState
  subscribe(listener: () => void): () => void
  /** Calls the listener with the state of each user's instance. */
  subscribeInstances?(listener: (state: UpstreamState) => void): () => void
}

interface IdentityDeps {
  /** The current servers. */
  servers(): readonly WatchedServer[]
  readonly state: Pick<StateStore, 'get' | 'set'>
  /** Reads the files that a server runs. */
  programOf(config: ProgramOf): Promise<ServerProgram>
  readonly audit: Pick<AuditSink, 'write'>
  readonly clock: Pick<Clock, 'wallMs'>
  readonly redact: Pick<Redactor, 'redactText'>
  revisions(): { readonly policy_revision: number; readonly catalog_revision: number }
  readonly onFault: (error: unknown) => void
}

/** The latest change of a server's identity. */
interface IdentityChange {
  readonly text: string
  /** When the change was found, in wall-clock milliseconds. */
  readonly at: number
}

export interface ServerIdentities {
  changeOf(server: string): IdentityChange | undefined
  /** Watches the current servers. */
  renew(): void
  /** Resolves when all pending comparisons are done. */
  settled(): Promise<void>
  close(): void
}

/** The pinned identity of a server. Arguments and URLs may hold secrets, so only their hashes are stored. */
interface PinnedIdentity {
  readonly command: string
  readonly args: string
  readonly url: string
  /** The files that the server ran; absent until they could be read. */
  readonly program?: ServerProgram | undefined
  /** The reported name and version; absent until the server has reported them. */
  readonly info?: string | undefined
  /** The hash of the instructions; absent until the server has been ready. */
  readonly instructions?: string | undefined
  readonly change?: IdentityChange | undefined
}

const KEY = 'pin-server:'

/**
 * Compares the identity of each server with the stored one, also across restarts: its configuration, the files that it
 * runs, and the name that it reports. Each change is recorded once, and shown until another change replaces it.
 */
export function watchIdentities(deps: IdentityDeps): ServerIdentities {
  const changes = new Map<string, IdentityChange>()
  let work = Promise.resolve()
  const schedule = (server: Pick<WatchedServer, 'config' | 'state'>) => {
    work = work.then(() => compare(server)).catch(deps.onFault)
  }
  const watch = (server: WatchedServer) => {
    let before: string | undefined
    schedule(server)
    const unsubscribe = server.subscribe(() => {
      const now = `${startOf(server.state)} ${infoOf(server.state)} ${instructionsOf(server.state)}`
      if (now === before) return
      before = now
      schedule(server)
    })
    const leave = watchInstances(server)
    return () => {
      unsubscribe()
      leave?.()
    }
  }
  /**
   * Compares all instances with one identity, since they run one program. Their instructions are ignored, as they may
   * name the user.
   */
  const watchInstances = (server: WatchedServer) => {
    const { config } = server
    let before: string | undefined
    return server.subscribeInstances?.((state) => {
      const now = `${startOf(state)} ${infoOf(state)}`
      if (infoOf(state) === undefined || now === before) return
      before = now
      schedule({ config, state: { ...state, status: 'starting' } })
    })
  }
  let unsubscribes = deps.servers().map(watch)
  return {
    renew() {
      for (const unsubscribe of unsubscribes) unsubscribe()
      unsubscribes = deps.servers().map(watch)
    },
    changeOf: (server) => changes.get(server),
    settled: () => work,
    close: () => unsubscribes.forEach((unsubscribe) => unsubscribe()),
  }

  async function compare({ config, state }: Pick<WatchedServer, 'config' | 'state'>): Promise<void> {
    const key = KEY + config.name
    const before = parseIdentity(await deps.state.get(key))
    const configured = configuredOf(config)
    const now: PinnedIdentity = {
      ...configured,
      // An unreadable file does not count as changed.
      program: {
        ...(before && runsAs(before, configured) && before.program),
        ...withoutNone(await deps.programOf(config)),
      },
      info: infoOf(state) ?? before?.info,
      instructions: instructionsOf(state) ?? before?.instructions,
      change: before?.change,
    }
    const text = before && describe(before, now)
    const change = text ? { text: deps.redact.redactText(text), at: deps.clock.wallMs() } : before?.change
    if (change) changes.set(config.name, change)
    if (before && isDeepStrictEqual(withoutNone(before), withoutNone({ ...now, change }))) return
    await deps.state.set(key, { ...now, change })
    if (text && change) await record(`${config.name}: ${change.text}`)
  }

  async function record(detail: string): Promise<void> {
    const entry = { event: 'server_changed', reason: 'identity_changed', detail } as const
    await deps.audit.write({ ...entry, wallMs: deps.clock.wallMs(), ...deps.revisions() })
  }
}

function configuredOf({ command = '', args, url = '' }: WatchedServer['config']): PinnedIdentity {
  return { command, args: sha256Hex(JSON.stringify(args)), url: sha256Hex(url) }
}

function infoOf({ serverInfo }: UpstreamState): string | undefined {
  return serverInfo && `${serverInfo.name} ${serverInfo.version}`.trim()
}

/** Returns a number that differs for each start of a server that became ready. */
function startOf({ status, since }: UpstreamState): number | undefined {
  return status === 'ready' ? since : undefined
}

/** Returns the hash of the instructions, because models receive them. A server that is not ready has not sent any. */
function instructionsOf({ status, instructions = '' }: UpstreamState): string | undefined {
  return status === 'ready' ? sha256Hex(instructions) : undefined
}

function describe(before: PinnedIdentity, now: PinnedIdentity): string {
  return [
    ...(before.command === now.command
      ? []
      : [`its command is ${now.command || '(none)'}, was ${before.command || '(none)'}`]),
    ...(before.args === now.args ? [] : ['its args have changed']),
    ...(before.url === now.url ? [] : ['its url has changed']),
    ...programChanges(before, now),
    ...(before.instructions === undefined || before.instructions === now.instructions
      ? []
      : ['its instructions have changed']),
    ...(before.info === undefined || before.info === now.info ? [] : [`it reports ${now.info}, was ${before.info}`]),
  ].join('; ')
}

function runsAs(before: PinnedIdentity, now: PinnedIdentity): boolean {
  return before.command === now.command && before.args === now.args
}

/**
 * Returns the changed files. Another command or other arguments run other files, and are recorded as changes
 * themselves.
 */
function programChanges(before: PinnedIdentity, now: PinnedIdentity): readonly string[] {
  if (!runsAs(before, now)) return []
  const differs = (file: keyof ServerProgram) =>
    before.program?.[file] !== undefined && before.program[file] !== now.program?.[file]
  return [
    ...(differs('command') ? ['the file that its command runs has changed'] : []),
    ...(differs('script') ? ['the script that it runs has changed'] : []),
  ]
}

function withoutNone<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as T
}

/** Returns `undefined` for an invalid value. The identity is then pinned again. */
function parseIdentity(value: unknown): PinnedIdentity | undefined {
  if (!isObject(value)) return undefined
  const { command, args, url, program, info, instructions, change } = value
  if (typeof command !== 'string' || typeof args !== 'string' || typeof url !== 'string') return undefined
  return {
    command,
    args,
    url,
    program: parseProgram(program),
    info: textOrNone(info),
    instructions: textOrNone(instructions),
    change: parseChange(change),
  }
}

function parseProgram(value: unknown): ServerProgram {
  if (!isObject(value)) return {}
  return withoutNone({ command: textOrNone(value['command']), script: textOrNone(value['script']) })
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function parseChange(value: unknown): IdentityChange | undefined {
  if (!isObject(value)) return undefined
  const { text, at } = value
  return typeof text === 'string' && typeof at === 'number' ? { text, at } : undefined
}
