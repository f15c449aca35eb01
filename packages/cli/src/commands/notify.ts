import type { ReceiverRow } from '@toolgate/gateway'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../table.ts'

export interface NotifyOptions extends TargetOptions {
  readonly json?: boolean
}

/** `toolgate notify`: prints the receivers of notifications about approvals, and how they are doing. */
export async function notifyCommand(options: NotifyOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).notifications()
  const { receivers } = body
  if (options.json) printJson(io.stdout, body)
  else if (receivers.length === 0) printLine(io.stdout, NONE)
  else
    printLine(
      io.stdout,
      renderTable(['RECEIVER', 'FORMAT', 'FOR', 'WAITING', 'LAST SENT', 'PROBLEM'], receivers.map(cellsOf), io.stdout),
    )
  return receivers.some(({ failing }) => failing) ? 'no' : 'ok'
}

const NONE = 'Nobody is told of approvals. Add "approvals: { notify: [{ url, format }] }" to the configuration.'

function cellsOf({ name, format, for: tenants, waiting, sentAt = '', failing }: ReceiverRow): string[] {
  const problem = failing ? `since ${failing.since}: ${failing.why}` : ''
  return [name, format, tenants?.join(', ') ?? 'all', String(waiting), sentAt, problem].map(printable)
}

/** `toolgate notify test [receiver]`: sends an example, and prints what each receiver answered. */
export async function notifyTestCommand(
  receiver: string | undefined,
  options: NotifyOptions,
  io: Io,
): Promise<ExitName> {
  const asked = receiver === undefined ? {} : { receiver }
  const body = await createApi(findTarget(options, io)).testNotifications(asked)
  if (options.json) printJson(io.stdout, body)
  else
    for (const { name, isTaken, text } of body.receivers)
      printLine(io.stdout, `${printable(name)}: ${isTaken ? 'the message was taken' : 'not taken'}; ${printable(text)}`)
  return body.receivers.every(({ isTaken }) => isTaken) ? 'ok' : 'no'
}
