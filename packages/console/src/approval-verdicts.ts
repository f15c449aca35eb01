import { postJson } from './api.ts'
import { useStore } from './hooks.ts'
import { live } from './live-updates.ts'
import { announce } from './parts/announcer.tsx'
import { Verdicts, type VerdictsSnapshot } from './verdicts.ts'
import type { AuditEvent } from './wire.ts'

/** How long a person can undo a rejection. */
const HOLD_MS = 5000
const RAN: ReadonlySet<AuditEvent> = new Set<AuditEvent>(['tool_call', 'tool_result', 'tool_abandoned'])

/** The verdicts of the page. They stay while another page is open, because held rejections are still sent. */
export const verdicts = new Verdicts({
  holdMs: HOLD_MS,
  announce,
  // A rejection may be sent while the page closes.
  post: (id, verdict) => postJson(`/api/approvals/${encodeURIComponent(id)}`, verdict, { keepalive: true }),
})

live.onMessage((message) => {
  if (message.type === 'approval' && message.approval.status !== 'pending') verdicts.note(message.approval)
  // No message reports that an approval was used: only the call's record shows it. The record of a comparison also has
  // the approval's id.
  else if (message.type === 'audit' && message.record.purpose === undefined && RAN.has(message.record.event))
    if (message.record.approval_id !== undefined) verdicts.noteUsed(message.record.approval_id)
})
addEventListener('pagehide', () => verdicts.sendHeld())

export function useVerdicts(): VerdictsSnapshot {
  return useStore(verdicts)
}
