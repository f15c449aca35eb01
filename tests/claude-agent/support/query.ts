import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { type Options, query, type SDKResultMessage } from '@anthropic-ai/claude-agent-sdk'
import { type Block, type ModelRequest, type Script, serveMessages } from './messages-api.ts'

export interface Ran {
  readonly requests: readonly ModelRequest[]
  /** What the model was told of each call, by the id of its `tool_use`. */
  readonly told: ReadonlyMap<string, string>
  /** The first one: of a query that is resumed with a call to go on with, that call's. */
  readonly result: SDKResultMessage | undefined
  readonly session: string | undefined
  /** How many parts of messages came as they were streamed. */
  readonly parts: number
  /** What the query threw. */
  readonly error: unknown
}

type Prompt = Parameters<typeof query>[0]['prompt']

/** A folder in which the harness works, and one for what it keeps: sessions can be resumed while it stands. */
export interface Place {
  readonly cwd: string
  /** For the harness: it finds nothing of this machine's user there, and asks nobody but the tests. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether the model's tools have written there. */
  wrote(file: string): boolean
  /** Puts a file there before the query. */
  write(file: string, text: string): void
  run(turns: readonly (readonly Block[])[] | Script, options: Options, prompt?: Prompt): Promise<Ran>
  close(): void
}

export function use(name: string, input: object = {}, id = 'toolu_1'): Block {
  return { type: 'tool_use', id, name, input }
}

export function createPlace(): Place {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-claude-'))
  const [home, cwd, temp] = ['home', 'cwd', 'temp'].map((name) => path.join(folder, name)) as [string, string, string]
  for (const each of [home, cwd, temp]) mkdirSync(each)
  // As who runs the harness may be another user, see below.
  for (const each of [folder, home, cwd, temp]) chmodSync(each, 0o777)
  const env = { PATH: process.env['PATH'], HOME: home, CLAUDE_CODE_TMPDIR: temp, ...QUIET }
  return {
    cwd,
    env,
    wrote: (file) => existsSync(path.join(cwd, file)),
    write: (file, text) => {
      mkdirSync(path.dirname(path.join(cwd, file)), { recursive: true })
      writeFileSync(path.join(cwd, file), text)
    },
    run: async (turns, options, prompt = 'Go.') => {
      const script = typeof turns === 'function' ? turns : (_: ModelRequest, index: number) => turns[index] ?? DONE
      const api = await serveMessages(script)
      try {
        return {
          ...(await read(prompt, { ...DEFAULTS, cwd, env: { ...env, ANTHROPIC_BASE_URL: api.url }, ...options })),
          requests: api.requests,
        }
      } finally {
        await api.close()
      }
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const DONE: readonly Block[] = [{ type: 'text', text: 'Done.' }]

const QUIET = {
  ANTHROPIC_API_KEY: 'scripted',
  DISABLE_TELEMETRY: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_ERROR_REPORTING: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
}

const DEFAULTS: Options = {
  model: 'claude-sonnet-4-5',
  systemPrompt: 'You are scripted.',
  permissionMode: 'default',
  settingSources: [],
  strictMcpConfig: true,
}

async function read(prompt: Prompt, options: Options): Promise<Omit<Ran, 'requests'>> {
  const told = new Map<string, string>()
  let result: SDKResultMessage | undefined
  let session: string | undefined
  let parts = 0
  try {
    for await (const message of query({ prompt, options })) {
      if (message.session_id !== undefined) session = message.session_id
      if (message.type === 'stream_event') parts++
      if (message.type === 'result') result ??= message
      if (message.type === 'user') readResults(message.message.content, told)
    }
    return { told, result, session, parts, error: undefined }
  } catch (error) {
    return { told, result, session, parts, error }
  }
}

function readResults(content: unknown, told: Map<string, string>): void {
  if (!Array.isArray(content)) return
  for (const block of content as { type: string; tool_use_id?: string; content?: unknown }[])
    if (block.type === 'tool_result') told.set(block.tool_use_id as string, textOf(block.content))
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return (content as { text?: string }[]).map(({ text }) => text ?? '').join('')
}

const NOBODY = 65_534

/** Tells the harness of its hooks a second late, as a busy machine does. */
export const LATE = hearing((_, hear) => setTimeout(hear, 1000))

/** Tells the harness of its hooks only after the result of the call that it resumes. It must not wait for them. */
export const TOO_LATE = hearing(({ stdout }, hear) => {
  let said = ''
  const listen = (bytes: Buffer): void => {
    said += bytes.toString('latin1')
    if (!said.includes(ENDED)) return
    stdout.off('data', listen)
    hear()
  }
  stdout.on('data', listen)
})

const ENDED = '"type":"tool_result"'

type Harness = ChildProcessByStdio<Writable, Readable, null>

function hearing(when: (harness: Harness, hear: () => void) => void): Options {
  return {
    spawnClaudeCodeProcess: ({ command, args, cwd, env, signal }) => {
      const child = spawn(command, args, { cwd, env, signal, stdio: ['pipe', 'pipe', 'ignore'] })
      const stdin = new PassThrough()
      when(child, () => stdin.pipe(child.stdin))
      return {
        stdin,
        stdout: child.stdout,
        get killed() {
          return child.killed
        },
        get exitCode() {
          return child.exitCode
        },
        kill: (by) => child.kill(by),
        on: child.on.bind(child),
        once: child.once.bind(child),
        off: child.off.bind(child),
      }
    },
  }
}

/** What lets every call through in the harness itself, which it refuses to do for root: then it is nobody who runs it. */
export const BYPASS: Options = {
  permissionMode: 'bypassPermissions',
  allowDangerouslySkipPermissions: true,
  ...(process.getuid?.() === 0
    ? {
        spawnClaudeCodeProcess: ({ command, args, cwd, env, signal }) =>
          spawn(command, args, { cwd, env, signal, stdio: ['pipe', 'pipe', 'ignore'], uid: NOBODY, gid: NOBODY }),
      }
    : {}),
}
