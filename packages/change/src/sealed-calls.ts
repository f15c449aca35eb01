import type { AuditRecord, InputBoxes, InputOpener } from '@toolgate/core/audit'
import { readOwnJson } from '@toolgate/values/json'
import { TOO_LARGE } from '@toolgate/core/internal'

/** Returns the whole input of a recorded call; `undefined` if it is not known. */
export type InputOf = (record: AuditRecord) => { readonly value: unknown } | undefined

const PAGE = 50

/**
 * Returns records together with their sealed inputs, for {@link whatIf} and {@link suggestPolicy}. Inputs are opened on
 * demand. An input is unknown if retention removed it, another key sealed it, or it was altered.
 *
 * @example
 * await whatIf({ before, after, ...withInputs(audit.exportRecords(), audit, createInputOpener({ key })) })
 */
export function withInputs(
  records: AsyncIterable<AuditRecord> | Iterable<AuditRecord>,
  boxes: InputBoxes,
  open: InputOpener,
): { readonly records: AsyncIterable<AuditRecord>; readonly inputOf: InputOf } {
  let held = new Map<number, string>()

  async function* pageWithBoxes(page: readonly AuditRecord[]) {
    const boxed = page.filter(({ input_box: hash }) => hash !== undefined && hash !== TOO_LARGE)
    const found = boxed.length === 0 ? [] : await boxes.inputBoxes(boxed)
    held = new Map(
      boxed.flatMap(({ seq }, i) => {
        const box = found[i]
        return box === undefined ? [] : [[seq, box] as const]
      }),
    )
    yield* page
  }

  async function* read() {
    let page: AuditRecord[] = []
    for await (const record of records) {
      page.push(record)
      if (page.length < PAGE) continue
      yield* pageWithBoxes(page)
      page = []
    }
    yield* pageWithBoxes(page)
  }

  return {
    records: read(),
    inputOf(record) {
      const box = held.get(record.seq)
      const opened = box === undefined ? undefined : open(record, box)
      return opened?.status === 'opened' ? parsed(opened.text) : undefined
    },
  }
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: readOwnJson(text, 'exact') }
  } catch {
    return undefined
  }
}
