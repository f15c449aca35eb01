import path from 'node:path'
import type { Probe, ProbeAnswer, ProbeAsking } from '@toolgate/core/groups'
import { checkShape, shapeOf } from '@toolgate/values'
import { redactor, type Redactor } from '@toolgate/values/redact'
import { type CommandEnd, type ProcessWatch, runBounded } from '../../util/bounded-command.ts'
import type { ProbeOptions } from './network-probes.ts'

export interface CommandProbeOptions extends ProbeOptions {
  /** The working folder. Default: this process's. */
  readonly cwd?: string | undefined
  /** The environment variables of the command, besides its surroundings. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Redacts the command's output. Default: the built-in redactor. */
  readonly redactor?: Redactor | undefined
  /** Kills the command's process group when this process is gone. */
  readonly reaper?: ProcessWatch | undefined
}

const OPTIONS = shapeOf<CommandProbeOptions>({ timeoutMs: true, cwd: true, env: true, redactor: true, reaper: true })
const MAX_STDERR_BYTES = 1024 * 1024
const TAIL_BYTES = 2048
const MAX_DETAIL_CHARS = 300
const DEFAULT_TIMEOUT_MS = 5000

/**
 * Returns a probe that runs a command and checks for exit code 0. There is no shell. At the deadline the command is
 * killed. When it ends, its child processes are killed.
 *
 * @example
 * commandProbe(['docker', 'info', '--format', '{{.ID}}'], { timeoutMs: 3000 })
 */
export function commandProbe(argv: readonly [string, ...string[]], options: CommandProbeOptions = {}): Probe {
  checkShape('commandProbe', options, OPTIONS)
  const { timeoutMs = DEFAULT_TIMEOUT_MS, cwd, env = {} } = options
  const name = path.basename(argv[0])
  return {
    key: `command ${JSON.stringify([argv, cwd ?? null, Object.entries(env)])}`,
    kind: 'command',
    what: `the command ${name}`,
    timeoutMs,
    isHeavy: true,
    ask: (asking) => run(argv, options, asking),
  }
}

async function run(
  argv: readonly [string, ...string[]],
  { cwd, env, redactor: redact = redactor, reaper }: CommandProbeOptions,
  { signal }: ProbeAsking,
): Promise<ProbeAnswer> {
  const end = await runBounded({
    argv,
    cwd,
    env,
    reads: 'stderr',
    maxBytes: MAX_STDERR_BYTES,
    keepBytes: TAIL_BYTES,
    signal,
    reaper,
  })
  if (end.problem === undefined) return true
  const detail = lastLine(tailOf(end), redact)
  const reason = `the command ${path.basename(argv[0])} ${end.problem}`
  return { available: false, reason, ...(detail === '' ? {} : { detail }) }
}

/** Returns the end of the output. A line with a cut beginning is left out, as it may be half of a secret. */
function tailOf({ output, isCut }: CommandEnd): string {
  return (isCut ? output.subarray(output.indexOf(10) + 1 || output.length) : output).toString()
}

/** Redacts before cutting, so that half a secret cannot remain. */
function lastLine(stderr: string, { redactText }: Redactor): string {
  const lines = redactText(stderr).split('\n')
  return (lines.findLast((line) => line.trim() !== '') ?? '').trim().slice(0, MAX_DETAIL_CHARS)
}
