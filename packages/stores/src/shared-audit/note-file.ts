import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** A line of signatures: a key id of 4 bytes and at least the 64 of an Ed25519 signature, which a torn line does not have. */
const SIGNATURE = /^\u2014 \S+ (?=.{92})[\w+/]+={0,2}$/

/** Returns the checkpoints in lines, one after the other. What a crash has left half written is left out. */
export async function* notesIn(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let text: string[] = []
  let signatures: string[] = []
  let isEnded = false
  for await (const line of lines) {
    if (isEnded && SIGNATURE.test(line)) {
      signatures.push(line)
      continue
    }
    if (isEnded) {
      if (signatures.length > 0) yield toNote(text, signatures)
      text = []
      signatures = []
    }
    // A checkpoint has no empty lines but the one before its signatures.
    isEnded = line === '' && text.length > 0
    if (line !== '') text.push(line)
  }
  if (signatures.length > 0) yield toNote(text, signatures)
}

function toNote(text: readonly string[], signatures: readonly string[]): string {
  return [...text, '', ...signatures, ''].join('\n')
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
