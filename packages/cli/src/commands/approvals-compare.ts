import { diff } from 'node:util'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, type Paint, painter, printable, printJson, printLine } from '../io.ts'
import { count } from '../render.ts'

export interface CompareApprovalOptions extends TargetOptions {
  readonly json?: boolean
}

/** `toolgate approvals compare <id>`: prints the difference between a waiting call's output and the current content. */
export async function compareApprovalCommand(id: string, options: CompareApprovalOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).compareApproval(id)
  const { atMs, reader = '', field = '', present, proposed, masked, notShown } = body
  const isShown = present !== undefined && proposed !== undefined
  if (options.json) printJson(io.stdout, body)
  else if (!isShown) printLine(io.stdout, `Not shown: ${printable(notShown ?? 'nothing was read.')}`)
  else {
    const paint = painter(io.stdout, io.env)
    const masks = masked ? ' Secrets that are there are masked.' : ''
    printLine(
      io.stdout,
      `As of ${new Date(atMs).toISOString()}, read with ${printable(reader)}, against ${printable(field)}. It may change until the call runs.${masks}`,
    )
    if (present === proposed) printLine(io.stdout, 'There is no difference.')
    else for (const line of differenceLines(present, proposed, paint)) printLine(io.stdout, line)
  }
  return isShown ? 'ok' : 'no'
}

const CONTEXT = 3
/** The maximum number of lines that are compared. More would take seconds. */
const MAX_LINES = 4000

type Op = readonly [sign: -1 | 0 | 1, line: string]

function differenceLines(present: string, proposed: string, paint: Paint): readonly string[] {
  const ops = opsOf(present.split('\n'), proposed.split('\n'))
  const isNear = (at: number): boolean =>
    ops.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(([sign]) => sign !== 0)
  const lines: string[] = []
  let skipped = 0
  for (const [at, [sign, text]] of ops.entries()) {
    if (!isNear(at)) {
      skipped++
      continue
    }
    if (skipped > 0) lines.push(paint('dim', `  … ${count(skipped, 'equal line')}`))
    skipped = 0
    if (sign === 0) lines.push(`  ${printable(text)}`)
    else lines.push(sign < 0 ? paint('red', `- ${printable(text)}`) : paint('green', `+ ${printable(text)}`))
  }
  return skipped > 0 ? [...lines, paint('dim', `  … ${count(skipped, 'equal line')}`)] : lines
}

function opsOf(before: readonly string[], after: readonly string[]): readonly Op[] {
  if (before.length + after.length <= MAX_LINES)
    // The signs are negated, because `diff` marks lines that only the first text has with 1.
    return diff(before, after).map(([sign, line]) => [-sign as Op[0], line] as const)
  return [...before.map((line) => [-1, line] as const), ...after.map((line) => [1, line] as const)]
}
