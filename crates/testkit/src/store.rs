//! Methods of a `SessionStore` that forward to another store, for stores that differ in the others.

/// Writes the named methods of a `SessionStore` into an `impl` block. They forward to the store in a
/// field: `forward_store!(inner: acquire, read, append, list);`. Any of these four may be left out.
#[macro_export]
macro_rules! forward_store {
    ($field:tt: $($method:ident),+) => { $($crate::forward_store!(@$method $field);)+ };
    (@acquire $field:tt) => {
        $crate::forward_store!(@fn $field acquire('b session: &'b $crate::reexports::SessionId)
            -> $crate::reexports::Lease);
    };
    (@read $field:tt) => {
        $crate::forward_store!(@fn $field read('b session: &'b $crate::reexports::SessionId,
            after: u64, limit: usize) -> Vec<$crate::reexports::LogEntry>);
    };
    (@append $field:tt) => {
        $crate::forward_store!(@fn $field append('b lease: &'b $crate::reexports::Lease,
            'c entries: &'c [$crate::reexports::Entry]) -> ());
    };
    (@list $field:tt) => {
        $crate::forward_store!(@fn $field list() -> Vec<$crate::reexports::SessionInfo>);
    };
    (@fn $field:tt $method:ident($($($life:lifetime)? $name:ident: $type:ty),*) -> $result:ty) => {
        fn $method<'a, $($($life,)?)* 'f>(
            &'a self,
            $($name: $type),*
        ) -> ::std::pin::Pin<Box<
            dyn Future<Output = Result<$result, $crate::reexports::StoreError>> + Send + 'f,
        >>
        where
            'a: 'f,
            $($($life: 'f,)?)*
            Self: 'f,
        {
            $crate::reexports::SessionStore::$method(&self.$field, $($name),*)
        }
    };
}
