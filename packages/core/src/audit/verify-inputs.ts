import type { AuditRecord } from '../ports/ports.ts'
import { parseRecord } from './record.ts'
import { isBoxOf, TOO_LARGE } from './sealed-input.ts'
import type { AuditFinding, InputsVerdict } from './verdict.ts'

/** Compares sealed inputs with their records. Memory grows by the hour, not by the record. */
interface InputsCheck {
  /** Adds a record. `box`: `null` if the box is missing; `undefined` if it was not looked up. */
  add(text: string, box: string | null | undefined): void
  /** Returns the verdict. `removedBefore`: records of other chains say that inputs before this time were removed. */
  finish(removedBefore?: number): InputsVerdict | undefined
}

const HOUR_MS = 3_600_000

/** Field names with their quotes occur only as names, because quotes in texts are escaped. */
const BOX = ',"input_box":"'
const BEFORE = ',"inputs_before":"'

/** Returns the time before which sealed inputs were removed, if a record states one. */
export function inputsRemovedBefore(text: string): number | undefined {
  if (!text.includes(BEFORE)) return undefined
  const record = parseRecord(text)
  const ms = record?.event === 'inputs_pruned' ? Date.parse(record.inputs_before ?? '') : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

export function createInputsCheck(report: (finding: AuditFinding) => void): InputsCheck {
  /** Missing inputs, by the hour of their records. */
  const absent = new Map<number, { readonly first: AuditRecord; count: number }>()
  let [present, altered, looked] = [0, 0, 0]
  let removed = Number.NEGATIVE_INFINITY

  return {
    add(text, box) {
      removed = Math.max(removed, inputsRemovedBefore(text) ?? removed)
      if (box === undefined || !text.includes(BOX)) return
      const record = parseRecord(text)
      if (record?.input_box === undefined || record.input_box === TOO_LARGE) return
      looked++
      if (box === null) {
        const hour = Math.floor(Date.parse(record.ts) / HOUR_MS)
        const known = absent.get(hour)
        if (known) known.count++
        else absent.set(hour, { first: record, count: 1 })
      } else if (isBoxOf(record, box)) present++
      else {
        altered++
        const what = `The sealed input of record ${record.seq} is not the one that was recorded.`
        report({ kind: 'edited', seq: record.seq, text: what })
      }
    },
    finish(removedBefore = Number.NEGATIVE_INFINITY) {
      if (looked === 0) return undefined
      const before = Math.max(removed, removedBefore)
      let [gone, missing] = [0, 0]
      for (const [hour, { first, count }] of absent) {
        if ((hour + 1) * HOUR_MS <= before) {
          gone += count
          continue
        }
        missing += count
        const which =
          count === 1
            ? `The sealed input of record ${first.seq} is missing`
            : `The sealed inputs of ${count} records from record ${first.seq} on are missing`
        report({ kind: 'missing', seq: first.seq, text: `${which}: no record says that they were removed.` })
      }
      return { present, gone, missing, altered }
    },
  }
}
