import { existsSync, readFileSync } from 'node:fs'
import {
  type AuditEntry,
  type AuditReader,
  createInputOpener,
  type InputBoxes,
  type InputOpener,
} from '@toolgate/core/audit'
import { type GatewayConfig, openAudit } from '@toolgate/gateway'
import { OPENERS_CHAIN } from '../commands/audit-common.ts'
import { openAuditFile } from '../commands/audit.ts'

/** An audit with sealed inputs, and the function that opens them. */
export interface SealedAudit extends AuditReader, InputBoxes {
  readonly open: InputOpener
  /** Adds an entry to the audit itself. Absent for a copy. */
  leaveTrace?(entry: AuditEntry): Promise<void>
  close(): Promise<void>
}

/** The environment variable of the key, for a file without its configuration. */
export const KEY_VARIABLE = 'TOOLGATE_INPUT_KEY'

/**
 * Returns a function that opens sealed inputs, with the keys of the configuration or of the environment, or `undefined`
 * without a key.
 */
export function openerOf(
  inputs: GatewayConfig['audit']['inputs'],
  env: Readonly<Record<string, string | undefined>>,
): InputOpener | undefined {
  if (typeof inputs === 'object') return createInputOpener({ key: inputs.key, olderKeys: inputs.olderKeys })
  const key = env[KEY_VARIABLE]
  return key ? createInputOpener({ key }) : undefined
}

/**
 * Returns a function that opens the sealed inputs of an audit, or of an audit file. `undefined` without a key, or if
 * the audit is not on this machine.
 */
export async function sealedInputsOf(
  config: GatewayConfig,
  file: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<SealedAudit | undefined> {
  const open = openerOf(config.audit.inputs, env)
  if (!open) return undefined
  return file === undefined ? openSealedAudit(config, open) : openSealedFile(file, open)
}

/** Opens a file, such as a copy, only for reading. */
export async function openSealedFile(path: string, open: InputOpener): Promise<SealedAudit> {
  const audit = await openAuditFile(path)
  return {
    open,
    query: (query) => audit.query(query),
    inputBoxes: (records) => audit.inputBoxes(records),
    close: () => audit.close(),
  }
}

/**
 * Opens the audit of a configuration. `undefined` if this machine has none, for example because it is in a gateway's
 * memory.
 */
export async function openSealedAudit(
  { audit: config, stores }: GatewayConfig,
  open: InputOpener,
): Promise<SealedAudit | undefined> {
  if (config.store === 'postgres')
    return stores?.postgres === undefined ? undefined : openShared(config, stores.postgres, open)
  if (config.path === undefined || !existsSync(config.path)) return undefined
  const leaveTrace = async (entry: AuditEntry) => {
    const audit = await openAudit(config)
    try {
      await audit.write(entry)
      await audit.flush()
    } finally {
      await audit.close()
    }
  }
  return { ...(await openSealedFile(config.path, open)), leaveTrace }
}

async function openShared(config: GatewayConfig['audit'], url: string, open: InputOpener): Promise<SealedAudit> {
  const { openPostgresStores } = await import('@toolgate/stores/postgres')
  const stores = await openPostgresStores({ url, applicationName: 'toolgate audit open' })
  const { keyFile, everyMs } = config.checkpoints || {}
  return {
    open,
    query: (query) => stores.auditReader.query(query),
    inputBoxes: (records) => stores.auditReader.inputBoxes(records),
    async leaveTrace(entry) {
      // These are the replicas' options for signing, because this process may become the signer.
      const log = { ...(keyFile && { key: readFileSync(keyFile, 'utf8') }), ...(everyMs && { everyMs }) }
      const audit = await stores.openAudit({ replica: OPENERS_CHAIN, log })
      await audit.write(entry)
      await audit.close()
    },
    close: () => stores.close(),
  }
}
