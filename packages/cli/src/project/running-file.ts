import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { parseObject } from '../json.ts'
import { readOwn, writeOwn } from './own-file.ts'

/** The running gateway of a configuration, and the secret that proves its identity. */
interface RunningFile {
  readonly url: string
  readonly secret: Buffer
  /** Its process on this machine. */
  readonly pid?: number | undefined
  /** The hash of the first plain console key of the configuration at the start. */
  readonly consoleHash?: string | undefined
}

/**
 * Returns the path at which `toolgate serve` writes its address. Only the owner can read the file, and git ignores it.
 */
function runningPath(config: string): string {
  const { dir, base } = path.parse(path.resolve(config))
  return path.join(dir, '.toolgate', `${base}.running.json`)
}

export function newIdentity(): Buffer {
  return randomBytes(32)
}

/**
 * Writes the address of a configuration's gateway, and returns a function that removes it. If the folder is not
 * writable, other commands cannot find the gateway.
 */
export function announce(config: string, { secret, ...others }: RunningFile): () => void {
  const file = runningPath(config)
  try {
    writeOwn(file, `${JSON.stringify({ ...others, secret: secret.toString('base64url') })}\n`)
  } catch {
    return () => {}
  }
  return () => {
    // Another gateway may serve the same configuration by now.
    if (readRunning(config)?.secret.equals(secret)) rmSync(file, { force: true })
  }
}

/**
 * Returns the last written address, or `undefined` if there is none. The gateway may no longer run. The file is ignored
 * if others can write to its folder, because their file could redirect keys to them.
 */
export function readRunning(config: string): RunningFile | undefined {
  try {
    const { url, secret, pid, consoleHash } = parseObject(readOwn(runningPath(config), config) ?? '') ?? {}
    if (typeof url !== 'string' || typeof secret !== 'string' || !URL.canParse(url)) return undefined
    return {
      url,
      secret: Buffer.from(secret, 'base64url'),
      ...(typeof pid === 'number' && { pid }),
      ...(typeof consoleHash === 'string' && { consoleHash }),
    }
  } catch {
    return undefined
  }
}
