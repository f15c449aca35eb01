import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { parseObject } from '../json.ts'
import { readOwn, writeOwn } from './own-file.ts'

/** A gateway that serves a configuration, and what it proves with who it is. */
interface RunningFile {
  readonly url: string
  readonly secret: Buffer
}

/** Where `toolgate serve` writes where it listens, for its owner only. Git ignores it. */
function runningPath(config: string): string {
  const { dir, base } = path.parse(path.resolve(config))
  return path.join(dir, '.toolgate', `${base}.running.json`)
}

export function newIdentity(): Buffer {
  return randomBytes(32)
}

/**
 * Writes where the gateway of a configuration listens, and returns the function that removes it. In a folder that cannot
 * be written to, nobody will find the gateway.
 */
export function announce(config: string, { url, secret }: RunningFile): () => void {
  const file = runningPath(config)
  try {
    writeOwn(file, `${JSON.stringify({ url, secret: secret.toString('base64url') })}\n`)
  } catch {
    return () => {}
  }
  return () => {
    // Another one may serve the same configuration by now.
    if (readRunning(config)?.secret.equals(secret)) rmSync(file, { force: true })
  }
}

/**
 * Returns what was written last; `undefined` if nothing is there. It may no longer run. In a folder that others can write to, a
 * file of theirs would send keys to them: it is not read.
 */
export function readRunning(config: string): RunningFile | undefined {
  try {
    const { url, secret } = parseObject(readOwn(runningPath(config), config) ?? '') ?? {}
    if (typeof url !== 'string' || typeof secret !== 'string' || !URL.canParse(url)) return undefined
    return { url, secret: Buffer.from(secret, 'base64url') }
  } catch {
    return undefined
  }
}
