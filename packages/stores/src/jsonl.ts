import { resolve } from 'node:path'
import { type AuditFile, openError } from './audit-file.ts'
import { type AuditFileOptions, checkAuditFileOptions, type FileAudit, withInputKey } from './audit-options.ts'
import { type LogView, viewAt } from './jsonl/log-files.ts'
import { openBoxes } from './input-boxes.ts'
import { countLines, exportLines, queryLines } from './jsonl/read.ts'
import { openWriter } from './jsonl/writer.ts'
import { openAudit } from './open-audit.ts'

export type { AuditFileOptions, CheckpointOptions, FileAudit, RotationOptions } from './audit-options.ts'

/**
 * Opens an audit in files of JSON lines, each line a record in RFC 8785 form. One process may write to it.
 *
 * With `rotate`, the file is closed from time to time and gets a name with the numbers of its records; the chain
 * continues in a new file. Readers read all files. An incomplete record at the end, left by a crash, is moved to
 * `<path>.torn-<n>`.
 *
 * @throws {ConfigError} for an unknown option
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be opened, is not an audit, or has a writer
 */
export function openJsonlAudit(given: AuditFileOptions): FileAudit {
  checkAuditFileOptions('openJsonlAudit', given)
  const path = resolve(given.path)
  try {
    const options = withInputKey(given)
    return openAudit(options.readOnly ? readerOf(path) : openWriter(path, options), options)
  } catch (error) {
    throw openError(path, error)
  }
}

function readerOf(path: string): AuditFile {
  const refuse = (): never => {
    throw new Error('opened for reading only')
  }
  function reading<T>(use: (view: LogView) => T): T {
    const view = viewAt(path)
    try {
      return use(view)
    } finally {
      view.close()
    }
  }
  // A missing path is an error now, rather than an empty audit later.
  viewAt(path).close()
  const boxes = openBoxes(path, { mayWrite: false, make: false })
  return {
    path,
    boxes,
    isSole: false,
    append: refuse,
    sync: async () => {},
    checkpoint: async () => refuse(),
    isPassing: () => false,
    query: async (query) => reading((view) => queryLines(view, query)),
    exportRecords: (query, onUnreadable) => exportLines(path, query, onUnreadable),
    countOutcomes: (query) => countLines(path, query),
    backwards: refuse,
    rotate: refuse,
    firstSeq: refuse,
    lastCut: refuse,
    textsIn: refuse,
    removeUpTo: refuse,
    reclaim: refuse,
    opened: () => {},
    close: () => boxes?.close(),
  }
}
