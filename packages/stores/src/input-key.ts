import { randomBytes } from 'node:crypto'
import type { AuditFileOptions } from './audit-options.ts'
import { checkpointsPath, inputKeyOf } from './evidence.ts'
import { secretAt } from './secret-file.ts'

const KEY_BYTES = 32

/** Returns the options of an audit with the key of its inputs, which is made at first use, also where no checkpoints are made. */
export function withInputKey(options: AuditFileOptions): AuditFileOptions {
  if (options.readOnly || options.inputKey !== undefined) return options
  const file = inputKeyOf(checkpointsPath(options.path, options.checkpoints || {}))
  const key = Buffer.from(secretAt(file, () => `${randomBytes(KEY_BYTES).toString('hex')}\n`).trim(), 'hex')
  if (key.length !== KEY_BYTES) throw new Error(`the key of inputs ${file} does not have ${KEY_BYTES} bytes in hex`)
  return { ...options, inputKey: key }
}
