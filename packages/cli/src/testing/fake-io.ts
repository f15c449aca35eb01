import { Writable } from 'node:stream'
import type { Io } from '../io.ts'

/** Returns an Io that stores its output. */
export function fakeIo(env: Io['env'] = {}, terminal = false): Io & { out(): string; err(): string } {
  const stdout = keeping(terminal)
  const stderr = keeping(terminal)
  return { stdout: stdout.stream, stderr: stderr.stream, env, out: stdout.text, err: stderr.text }
}

function keeping(terminal: boolean): { stream: Writable; text: () => string } {
  let text = ''
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      done()
    },
  })
  if (terminal) Object.assign(stream, { isTTY: true, columns: 80 })
  return { stream, text: () => text }
}
