import { lstatSync } from 'node:fs'
import { isObject } from '@toolgate/values/json'
import { CliError } from '../exit.ts'
import { printable } from '../io.ts'
import { parseObject } from '../json.ts'
import { type FileChange, hashOfText, readFile, writeChanges } from './text-file.ts'

/** One change that `undo` can revert. */
interface UndoStep {
  /** The command that made the change. */
  readonly by: string
  readonly at: string
  readonly files: readonly SavedFile[]
}

interface SavedFile {
  readonly file: string
  /** The earlier text. Absent if the file did not exist. */
  readonly before?: string
  /** The hash of the text that was written. */
  readonly after: string
}

const MAX_STEPS = 20

/** Returns the path of the backups of a client's file. They are beside it, readable only by its owner. */
export function backupPath(file: string): string {
  return `${file}.toolgate-undo.json`
}

/** Writes changes, and stores the earlier texts. `file` is the client's file. */
export function applyChanges(file: string, by: string, changes: readonly FileChange[]): void {
  const step: UndoStep = {
    by,
    at: new Date().toISOString(),
    files: changes.map((one) => ({
      file: one.file,
      ...(one.before === undefined ? {} : { before: one.before }),
      after: hashOfText(one.after),
    })),
  }
  const steps = [...readSteps(file), step].slice(-MAX_STEPS)
  // The backup is written first, because a change without one could not be reverted.
  const saved = saveSteps(file, steps)
  try {
    writeChanges(changes)
  } catch (error) {
    writeChanges([{ file: saved.file, before: saved.after, after: saved.before }])
    throw error
  }
}

/**
 * Reverts the last change. Returns the restored files.
 *
 * @throws {CliError} `no` if there is no change, or if one of its files was changed since: then all stay as they are
 */
export function undoLast(file: string): readonly string[] {
  const steps = readSteps(file)
  const last = steps.at(-1)
  if (!last) throw new CliError('no', `There is nothing to undo for ${printable(file)}.`)
  const changes = last.files.map(({ file: one, before, after }) => {
    const now = readFile(one)
    if (hashOfText(now) !== after)
      throw new CliError('no', `${printable(one)} was changed since. Nothing was undone.`, {
        hint: `What was there before "${last.by}" is in ${printable(backupPath(file))}.`,
        code: 'changed_meanwhile',
      })
    return { file: one, before: now, after: before }
  })
  writeChanges(changes)
  saveSteps(file, steps.slice(0, -1))
  return changes.map((one) => one.file)
}

function saveSteps(file: string, steps: readonly UndoStep[]): FileChange {
  const backup = backupPath(file)
  const after = steps.length === 0 ? undefined : `${JSON.stringify({ steps }, undefined, 2)}\n`
  const change = { file: backup, before: readFile(backup), after }
  writeChanges([change])
  return change
}

function readSteps(file: string): readonly UndoStep[] {
  const backup = backupPath(file)
  const text = readFile(backup)
  if (text !== undefined && !isOwn(backup))
    throw new CliError('no', `${printable(backup)} is not a backup of this command: others can read or write it.`, {
      hint: 'It would say which files are overwritten with what. If you did not put it there, delete it.',
      code: 'backup_untrusted',
    })
  const steps = text === undefined ? [] : parseObject(text)?.['steps']
  if (Array.isArray(steps) && steps.every(isStep)) return steps
  throw new CliError('no', `${printable(backupPath(file))} is not a backup of this command.`)
}

/** Whether we wrote a backup: then it has mode 600, unlike a file that came with a project. Windows has no modes. */
function isOwn(backup: string): boolean {
  const { mode, uid } = lstatSync(backup)
  return process.platform === 'win32' || ((mode & 0o177) === 0 && uid === process.getuid?.())
}

function isStep(value: unknown): value is UndoStep {
  if (!isObject(value) || !Array.isArray(value['files'])) return false
  return value['files'].every(
    (one) => isObject(one) && typeof one['file'] === 'string' && typeof one['after'] === 'string',
  )
}
