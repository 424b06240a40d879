label: for (const q of [1, 2]) { if (q) continue label }
!0
