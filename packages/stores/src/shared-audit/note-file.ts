import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** A line of signatures. The text of a note has none such before its empty line. */
const SIGNATURE = '\u2014 '

/** Returns the notes in lines, one after the other. Empty lines between them mean nothing. */
export async function* notesIn(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let note: string[] = []
  let isSigned = false
  for await (const line of lines) {
    if (isSigned && !line.startsWith(SIGNATURE)) {
      yield toNote(note)
      note = []
      isSigned = false
    }
    if (note.length === 0 && line === '') continue
    note.push(line)
    isSigned ||= note.length > 1 && note.at(-2) === '' && line.startsWith(SIGNATURE)
  }
  if (note.length > 0) yield toNote(note)
}

function toNote(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}

/** Returns the notes in a file. @throws an error of the file system */
export function readNotes(path: string): AsyncGenerator<string> {
  return notesIn(linesOf(path))
}

/** Returns the lines of a text file. */
export async function* linesOf(path: string): AsyncGenerator<string> {
  const stream = createReadStream(path, { highWaterMark: 1024 * 1024 })
  // An interface that is made before the file is open loses the error of opening it.
  await once(stream, 'ready')
  yield* createInterface({ input: stream, crlfDelay: Infinity })
}
