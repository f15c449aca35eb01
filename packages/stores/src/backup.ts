// `@toolgate/stores/backup`: copies a gateway's files while it runs, and restores them.
export {
  type AuditPlace,
  type BackedUpFile,
  type BackupManifest,
  type BackupRole,
  type GatewayFiles,
  makeBackup,
  readBackup,
} from './backup/backup.ts'
export {
  checkUnused,
  type Draft,
  draftFiles,
  filesInPlace,
  moveAside,
  placeFiles,
  type RestoredState,
  settleState,
} from './backup/restore.ts'
