//! [`ChildGuard`]: a process that does not outlive its test.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct ChildGuard(Option<Child>);

impl ChildGuard {
    /// Guards a process.
    pub fn new(child: Child) -> Self {
        Self(Some(child))
    }

    /// Returns the process, which is guarded no longer.
    pub fn release(mut self) -> Child {
        self.0.take().unwrap()
    }

    /// Kills the process and waits for its end.
    pub fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Deref for ChildGuard {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().unwrap()
    }
}

impl DerefMut for ChildGuard {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // An error means that it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
