// `@toolgate/core/change`: tests of policies, and what a change of them would mean.

export {
  type CatalogSnapshot,
  formatSnapshot,
  itemsOfSnapshot,
  type RunStub,
  type SnapshotItem,
  takeSnapshot,
  toSnapshot,
} from '../change/snapshot.ts'
