// `@toolgate/stores/backup`: copies of a gateway's files, made while it runs, and how they are put back.
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
