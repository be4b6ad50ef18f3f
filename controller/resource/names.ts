/** Names that users and other programs see; changing one breaks them. */
export const apiGroup = "dhp.example.com";
export const apiVersion = "v1alpha1";
export const cleanupFinalizer = "dhp.example.com/provider-cleanup";
export const classInUseFinalizer = "dhp.example.com/class-in-use";
export const firstPlacementAnnotation = "dhp.example.com/first-placement";
export const reconcileRequestedAnnotation = "dhp.example.com/reconcile-requested-at";
export const defaultClassAnnotation = "dhp.example.com/is-default-class";
/** Version written with each placement, so that a roll-back knows what it reads. */
export const placementVersion = 1;
