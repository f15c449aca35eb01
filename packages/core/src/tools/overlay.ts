import { shapeOf } from '../util/shape.ts'
import type { ToolAnnotations } from './tool.ts'

/** What a host says of somebody else's tool, beside what the tool says of itself. */
export interface ToolOverlay {
  readonly tags?: readonly string[] | undefined
  readonly category?: string | undefined
  /** A caller must hold all of them. */
  readonly requiredScopes?: readonly string[] | undefined
  /** Groups of the gate that it joins. */
  readonly groups?: readonly string[] | undefined
  readonly annotations?: ToolAnnotations | undefined
}

export const OVERLAY = shapeOf<ToolOverlay>(
  { tags: true, category: true, requiredScopes: true, groups: true, annotations: true },
  'field',
)
