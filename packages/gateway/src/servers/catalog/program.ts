import { createHash, type Hash } from 'node:crypto'
import { constants, type FileHandle, access, open, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { sha256Hex } from '@toolgate/values'
import type { ServerConfig } from '../../config/config.ts'

/** The hashes of the files that a server runs. Each covers the resolved path, the size and the content. */
export interface ServerProgram {
  /** The executable file of the command. */
  readonly command?: string | undefined
  /** The script that the command runs, if the command is an interpreter: the first one in `args`. */
  readonly script?: string | undefined
}

export type ProgramOf = Pick<ServerConfig, 'command' | 'args'> & Partial<Pick<ServerConfig, 'cwd' | 'env'>>

const MIB = 1024 * 1024
/** Only the two ends of a larger file, such as an interpreter, are read. */
const WHOLE_BYTES = 64 * MIB
const END_BYTES = 4 * MIB
const INTERPRETERS =
  /^(?:node|nodejs|tsx|ts-node|bun|deno|python[\d.]*|uv|ruby|perl|php|java|sh|bash|dash|zsh)(?:\.exe)?$/i
const SCRIPT = /(?:\.(?:[cm]?[jt]sx?|pyz?|rb|pl|php|sh|jar)|^[^.]+)$/i
/** Options that are followed by code or the name of a module. */
const INLINE = /^-(?:m|c|e|p|-eval|-print)$/

/**
 * Returns a reader of programs. It never throws: an unreadable file has no hash. A file is read again when its size,
 * times or inode change.
 */
export function createProgramReader(): (server: ProgramOf) => Promise<ServerProgram> {
  const known = new Map<string, { readonly of: string; readonly hash: string }>()
  const hashOf = async (file: string | undefined): Promise<string | undefined> => {
    if (file === undefined) return undefined
    try {
      const { size, mtimeMs, ctimeMs, ino } = await stat(file)
      const of = `${size} ${mtimeMs} ${ctimeMs} ${ino}`
      const before = known.get(file)
      if (before?.of === of) return before.hash
      const hash = sha256Hex(JSON.stringify([file, size, await digestOf(file)]))
      known.set(file, { of, hash })
      return hash
    } catch {
      return undefined
    }
  }
  return async (server) => ({
    command: await hashOf(await findCommand(server)),
    script: await hashOf(await findScript(server)),
  })
}

/** Finds a bare name on the PATH of the child process, as starting the server does. */
async function findCommand({ command, env }: ProgramOf): Promise<string | undefined> {
  if (command === undefined) return undefined
  if (command.includes('/')) return realFile(command)
  for (const folder of (env?.['PATH'] ?? process.env['PATH'] ?? '').split(path.delimiter)) {
    const file = path.join(folder || '.', command)
    const isRunnable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    )
    const found = isRunnable ? await realFile(file) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

async function findScript({ command = '', args, cwd = '.' }: ProgramOf): Promise<string | undefined> {
  if (!INTERPRETERS.test(path.basename(command))) return undefined
  for (const arg of args) {
    if (INLINE.test(arg)) return undefined
    if (arg.startsWith('-') || !SCRIPT.test(path.basename(arg))) continue
    const found = await realFile(path.resolve(cwd, arg))
    if (found !== undefined) return found
  }
  return undefined
}

async function realFile(file: string): Promise<string | undefined> {
  try {
    const real = await realpath(file)
    return (await stat(real)).isFile() ? real : undefined
  } catch {
    return undefined
  }
}

async function digestOf(file: string): Promise<string> {
  const handle = await open(file)
  try {
    const { size } = await handle.stat()
    const hash = createHash('sha256')
    if (size <= WHOLE_BYTES) await addTo(hash, handle, 0, size)
    else for (const start of [0, size - END_BYTES]) await addTo(hash, handle, start, start + END_BYTES)
    return hash.digest('hex')
  } finally {
    await handle.close()
  }
}

/** Reads a file in pieces, so that requests are served in between. */
async function addTo(hash: Hash, handle: FileHandle, start: number, end: number): Promise<void> {
  const piece = Buffer.alloc(Math.min(MIB / 4, end - start))
  let at = start
  while (at < end) {
    const { bytesRead } = await handle.read(piece, 0, Math.min(piece.length, end - at), at)
    if (bytesRead === 0) return
    hash.update(piece.subarray(0, bytesRead))
    at += bytesRead
  }
}
