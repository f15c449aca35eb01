import type { LimitRow } from '@toolgate/gateway'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../table.ts'

export interface LimitsOptions extends TargetOptions {
  readonly limit?: number
  readonly json?: boolean
}

/** `toolgate limits`: prints the remaining budgets of limits with a cost, the smallest first. */
export async function limitsCommand({ limit, ...options }: LimitsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).limits({ ...(limit !== undefined && { limit }) })
  if (options.json) printJson(io.stdout, body)
  else if (body.limits.length === 0) printLine(io.stdout, 'No call has asked for a budget yet.')
  else
    printLine(
      io.stdout,
      renderTable(['RULE', 'HOLDER', 'USED', 'MAX', 'LEFT', 'SOME FREE AT'], body.limits.map(cellsOf), io.stdout),
    )
  return 'ok'
}

function cellsOf({ rule, holder, used, max, remaining, until, unit }: LimitRow): string[] {
  const amount = (of: number) => (unit ? `${(of / 10 ** unit.places).toFixed(unit.places)} ${unit.name}` : String(of))
  const who = Object.entries(holder).map(([part, name]) => `${part} ${name}`)
  const free = until === undefined ? '' : new Date(until).toISOString()
  return [rule, who.join(', '), amount(used), amount(max), amount(remaining), free].map(printable)
}
